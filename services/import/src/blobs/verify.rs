//! The content of a blob in the target, read back and compared with what was read in the source.

use bytes::Bytes;
use md5::{Digest as _, Md5};
use tonic::Status;
use trestle_command::retry::repeated;
use trestle_proto::blob::v1::{
    Blob, BlobConditions, ByteRange, HttpProperties, ListPageRangesRequest, ReadBlobRequest,
};

use super::{BlobFailure, BlobTarget, ImportedBlob, ImportedKind, PagesWithData};

/// Length and MD5 of the content of a blob; of a page blob, of the pages with data and where they are.
#[derive(Clone, Default)]
pub(super) struct ContentSum {
    md5: Md5,
    bytes: u64,
    /// The end of the pages that were added last.
    end: Option<u64>,
}

impl ContentSum {
    /// Adds the next bytes.
    pub(super) fn add(&mut self, data: &[u8]) {
        self.md5.update(data);
        self.bytes += u64::try_from(data.len()).unwrap_or(u64::MAX);
    }

    /// Adds the next pages with data. However they are divided, the sum is the same.
    pub(super) fn add_pages(&mut self, pages: PagesWithData, data: &[Bytes]) {
        self.begin_pages(pages.offset);
        data.iter().for_each(|piece| self.add_page_bytes(piece));
    }

    fn begin_pages(&mut self, offset: u64) {
        if self.end != Some(offset) {
            self.md5.update(offset.to_be_bytes());
        }
        self.end = Some(offset);
    }

    fn add_page_bytes(&mut self, data: &[u8]) {
        self.add(data);
        let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.end = self.end.map(|end| end.saturating_add(bytes));
    }

    fn md5(&self) -> [u8; 16] {
        self.md5.clone().finalize().into()
    }

    /// Compares the sum with the MD5 that the source states, if it does.
    pub(super) fn verify_stated(&self, properties: &HttpProperties) -> Result<(), BlobFailure> {
        let (stated, found) = (&properties.content_md5, self.md5());
        match stated.is_empty() || stated[..] == found {
            true => Ok(()),
            false => {
                let (stated, found) = (hex(stated), hex(&found));
                let text =
                    format!("the source states the MD5 {stated}, and its content has {found}");
                Err(BlobFailure::Item(text))
            }
        }
    }

    fn difference(&self, target: &Self) -> Option<String> {
        let (read, stored) = (hex(&self.md5()), hex(&target.md5()));
        let is_same = self.bytes == target.bytes && read == stored;
        let difference = || {
            format!(
                "the target differs: {} bytes with the MD5 {stored}, and the source has {} with {read}",
                target.bytes, self.bytes
            )
        };
        (!is_same).then(difference)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl BlobTarget<'_> {
    /// Reads back a blob that was written; what it is now.
    pub(super) async fn verify(
        &self,
        state: &ImportedBlob,
        source: &ContentSum,
    ) -> Result<Blob, BlobFailure> {
        let name = state.name.as_str();
        let (blob, target) = match state.kind {
            ImportedKind::Page { .. } => repeated(async || self.read_pages(name).await).await?,
            ImportedKind::Block | ImportedKind::Append { .. } => {
                repeated(async || self.read_all(name).await).await?
            }
        };
        if blob.size != state.size {
            let text = format!("the target has {} bytes of {}", blob.size, state.size);
            return Err(BlobFailure::Item(text));
        }
        source.difference(&target).map_or(Ok(blob), |text| Err(BlobFailure::Item(text)))
    }

    async fn read_all(&self, name: &str) -> Result<(Blob, ContentSum), Status> {
        let mut sum = ContentSum::default();
        let blob = self.read(name, (None, None), |data| sum.add(data)).await?;
        Ok((blob, sum))
    }

    /// Reads the pages with data of one version of a blob.
    async fn read_pages(&self, name: &str) -> Result<(Blob, ContentSum), Status> {
        let (mut blob, mut sum) = (None::<Blob>, ContentSum::default());
        let mut page_token = String::new();
        loop {
            let (container, name_of) = (self.container.to_owned(), name.to_owned());
            let page_token_of = std::mem::take(&mut page_token);
            let request = ListPageRangesRequest {
                container,
                blob: name_of,
                page_token: page_token_of,
                ..Default::default()
            };
            let page = self.target.session.blobs().list_page_ranges(request).await?.into_inner();
            let found = blob.get_or_insert(page.blob.unwrap_or_default()).clone();
            for range in page.ranges {
                let range = ByteRange { offset: range.offset, length: Some(range.length) };
                sum.begin_pages(range.offset);
                let etag = Some(found.etag.clone());
                self.read(name, (etag, Some(range)), |data| sum.add_page_bytes(data)).await?;
            }
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok((found, sum));
            }
        }
    }

    /// Reads a blob or a range of it.
    async fn read(
        &self,
        name: &str,
        (etag, range): (Option<String>, Option<ByteRange>),
        mut add: impl FnMut(&[u8]),
    ) -> Result<Blob, Status> {
        let if_match = etag.into_iter().collect();
        let request = ReadBlobRequest {
            container: self.container.to_owned(),
            blob: name.to_owned(),
            range,
            conditions: Some(BlobConditions { if_match, ..Default::default() }),
            ..Default::default()
        };
        let mut messages = self.target.session.blobs().read_blob(request).await?.into_inner();
        let mut blob = Blob::default();
        while let Some(message) = messages.message().await? {
            blob = message.blob.unwrap_or(blob);
            add(&message.data);
        }
        Ok(blob)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(offset: u64, data: &[&'static [u8]]) -> (PagesWithData, Vec<Bytes>) {
        let data: Vec<_> = data.iter().copied().map(Bytes::from_static).collect();
        let length = data.iter().map(|piece| piece.len() as u64).sum();
        (PagesWithData { offset, length }, data)
    }

    fn sum_of(all: &[(PagesWithData, Vec<Bytes>)]) -> ContentSum {
        let mut sum = ContentSum::default();
        all.iter().for_each(|(pages, data)| sum.add_pages(*pages, data));
        sum
    }

    #[test]
    fn pages_have_one_sum_however_they_are_divided() {
        let whole = sum_of(&[pages(0, &[b"abcd"]), pages(8, &[b"ef"])]);

        let divided = sum_of(&[pages(0, &[b"a", b"b"]), pages(2, &[b"cd"]), pages(8, &[b"ef"])]);
        assert_eq!(whole.difference(&divided), None);
        for other in [
            sum_of(&[pages(0, &[b"abcd"]), pages(9, &[b"ef"])]),
            sum_of(&[pages(0, &[b"abcdef"])]),
            sum_of(&[pages(1, &[b"abcd"]), pages(8, &[b"ef"])]),
            sum_of(&[pages(0, &[b"abcd"]), pages(8, &[b"eg"])]),
            sum_of(&[pages(0, &[b"abcd"])]),
        ] {
            assert!(whole.difference(&other).is_some());
        }
    }

    #[test]
    fn an_md5_that_the_source_states_is_compared() {
        let mut sum = ContentSum::default();
        sum.add(b"hel");
        sum.add(b"lo");
        let md5 = hex(&sum.md5());
        assert_eq!(md5, "5d41402abc4b2a76b9719d911017c592");
        let stating = |content_md5: Vec<u8>| HttpProperties {
            content_md5: content_md5.into(),
            ..HttpProperties::default()
        };
        assert!(sum.verify_stated(&stating(Vec::new())).is_ok());
        assert!(sum.verify_stated(&stating(sum.md5().to_vec())).is_ok());

        let failure = sum.verify_stated(&stating(vec![7; 16])).unwrap_err();

        let BlobFailure::Item(why) = failure else { panic!("of one blob") };
        assert!(why.contains(&"07".repeat(16)) && why.contains(&md5), "{why}");
    }
}
