//! The command line of `trestle blob cp`.

use clap::Args;
use trestle_command::values::whole_number;

use super::{BlobStateArgs, tag};
use crate::blob::CopySide;

pub(super) const COPY_HELP: &str = "\
A blob begins with blob://, and one side at least is a blob:
  trestle blob cp cat.png blob://photos/2026/cat.png
  trestle blob cp -r photos/ blob://photos/2026
  trestle blob cp -r blob://photos/2026 photos/

Between two blobs the server copies, and no bytes pass through this command; from a URL too, where the settings of the
server list its host:
  trestle blob cp -r blob://photos/2026 blob://archive/2026
  trestle blob cp --version-id 2026-08-28T17:07:35.2821851Z blob://photos/cat.png blob://photos/cat.png
  trestle blob cp https://example.com/cat.png blob://photos/cat.png

With --recursive, every file in the folder becomes a blob whose name is the path below the folder, after the given name
and a slash; and back. What has no place at the other side is reported and left out, such as the blobs ../a and a beside
a/b; the others are copied, and the exit code is 1. So are links out of the folder, and links to folders, without
--follow-links.

A file of more than 8 MiB is sent in blocks. They are kept for 7 days: repeating an interrupted copy sends the missing
ones only. A downloaded file has its name only when it is complete and on stable storage. Existing blobs and files are
replaced.";

/// Arguments of `cp`.
#[derive(Debug, Args)]
pub struct CopyBlobArgs {
    /// A file, a folder, blob://CONTAINER/NAME, or a URL
    pub(in crate::blob) from: CopySide,
    /// A file, a folder or blob://CONTAINER/NAME; what is in a folder has the last part of the name of the source
    pub(crate) to: CopySide,
    /// Copy a folder
    #[arg(long, short)]
    pub(in crate::blob) recursive: bool,
    /// Copy what links to folders, and to files outside of the folder, lead to
    #[arg(long)]
    pub(in crate::blob) follow_links: bool,
    /// How many files or blocks are copied at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole_number::<u8>(1..=64))]
    pub(in crate::blob) parallel: u8,
    /// Media type of the blobs [default: application/octet-stream]
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub(in crate::blob) content_type: String,
    /// A tag of the blobs; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub(in crate::blob) tags: Vec<(String, String)>,
    /// Id of the lease of the blob that is replaced
    #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
    #[arg(conflicts_with = "recursive")]
    pub(in crate::blob) lease_id: String,
    /// Which state of the source
    #[command(flatten)]
    pub(in crate::blob) state: BlobStateArgs,
}
