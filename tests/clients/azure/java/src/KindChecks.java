import com.azure.storage.blob.models.AppendBlobRequestConditions;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;

/** Append blobs, page blobs, and copies. */
final class KindChecks {
  private static final int PAGE = 512;

  void anAppendBlobGrowsUntilItIsSealed() {
    var client = Suite.container().getBlobClient("log").getAppendBlobClient();
    client.create();
    for (int number = 0; number < 3; number++) {
      var item = client.appendBlock(stream("line " + number + "\n"), 7);
      Suite.equal(item.getBlobAppendOffset(), String.valueOf(number * 7));
    }

    var position = new AppendBlobRequestConditions().setAppendPosition(7L);
    Suite.rejected(
        () -> client.appendBlockWithResponse(stream("x"), 1, null, position, null, null),
        412,
        "AppendPositionConditionNotMet");
    client.seal();
    Suite.rejected(() -> client.appendBlock(stream("x"), 1), 409, "BlobIsSealed");
    Suite.equal(client.downloadContent().toString(), "line 0\nline 1\nline 2\n");
  }

  void pagesAreWrittenClearedAndListed() {
    var client = Suite.container().getBlobClient("disk").getPageBlobClient();
    client.create(8 * PAGE);
    client.uploadPages(
        new PageRange().setStart(PAGE).setEnd(5 * PAGE - 1), stream("1".repeat(4 * PAGE)));
    var snapshot = client.createSnapshot().getSnapshotId();
    client.clearPages(new PageRange().setStart(2 * PAGE).setEnd(3 * PAGE - 1));

    var ranges = client.listPageRanges(new BlobRange(0)).stream().map(item -> item.getRange().toString()).toList();
    Suite.equal(ranges, java.util.List.of("bytes=512-1023", "bytes=1536-2559"));
    var changes = client.listPageRangesDiff(new BlobRange(0), snapshot).stream().toList();
    Suite.equal(changes.size(), 1);
    Suite.equal(changes.get(0).isClear(), true);
    client.resize(2 * PAGE);
    Suite.equal(client.getProperties().getBlobSize(), 2L * PAGE);
  }

  void aCopyHasTheContentOfItsSource() {
    var container = Suite.container();
    var source = Suite.blob(container, "dir/source é", "copied");
    var target = container.getBlobClient("target").getBlockBlobClient();

    var copied = target.beginCopy(source.getBlobUrl(), Duration.ofMillis(100)).waitForCompletion();

    Suite.equal(copied.getValue().getCopyStatus(), CopyStatusType.SUCCESS);
    Suite.equal(Suite.text(target), "copied");
    Suite.rejected(
        () -> target.abortCopyFromUrl(copied.getValue().getCopyId()), 409, "NoPendingCopyOperation");
  }

  void aBlobIsWrittenFromAnAddress() {
    var container = Suite.container();
    var source = readUrl(Suite.blob(container, "dir/source é", "from a URL"));

    var copied = container.getBlobClient("copied").getBlockBlobClient();
    copied.copyFromUrl(source);
    Suite.equal(Suite.text(copied), "from a URL");
    var uploaded = container.getBlobClient("uploaded").getBlockBlobClient();
    uploaded.uploadFromUrl(source);
    Suite.equal(Suite.text(uploaded), "from a URL");
    var appended = container.getBlobClient("appended").getAppendBlobClient();
    appended.create();
    appended.appendBlockFromUrl(source, null);
    Suite.equal(appended.downloadContent().toString(), "from a URL");
  }

  /** The address of a blob with a signature that permits its read. */
  static String readUrl(BlockBlobClient blob) {
    var values =
        new BlobServiceSasSignatureValues(
            OffsetDateTime.now().plusHours(1), new BlobSasPermission().setReadPermission(true));
    return blob.getBlobUrl() + "?" + blob.generateSas(values);
  }

  private static InputStream stream(String text) {
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
  }
}
