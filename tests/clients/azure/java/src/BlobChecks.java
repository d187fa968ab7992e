import com.azure.core.util.BinaryData;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlockListType;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.DownloadRetryOptions;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Block blobs: content, blocks, conditions, snapshots, leases. */
final class BlobChecks {
  private static final int MEBIBYTE = 1 << 20;

  void aBlobIsReadAsItWasWritten() {
    var client = Suite.container().getBlobClient("dir/a b+c é%.txt");
    var options =
        new BlobParallelUploadOptions(BinaryData.fromString("hello"))
            .setHeaders(new BlobHttpHeaders().setContentType("text/plain").setCacheControl("no-cache"))
            .setMetadata(Map.of("key", "value"))
            .setTags(Map.of("project", "a b", "k", "v"));
    client.uploadWithResponse(options, null, null);

    var properties = client.getProperties();
    Suite.equal(properties.getBlobSize(), 5L);
    Suite.equal(properties.getContentType(), "text/plain");
    Suite.equal(properties.getCacheControl(), "no-cache");
    Suite.equal(properties.getMetadata(), Map.of("key", "value"));
    Suite.equal(properties.getTagCount(), 2L);
    Suite.equal(client.getTags(), Map.of("project", "a b", "k", "v"));
    Suite.equal(client.downloadContent().toString(), "hello");
    client.delete();
    Suite.equal(client.exists(), false);
    Suite.rejected(client::getProperties, 404, "BlobNotFound");
  }

  void aRangeIsReadWithItsChecksum() {
    var client = Suite.blob(Suite.container(), "blob", "0123456789");
    var content = new ByteArrayOutputStream();

    var response =
        client.downloadStreamWithResponse(
            content, new BlobRange(2, 3L), new DownloadRetryOptions(), null, true, null, null);

    Suite.equal(content.toString(StandardCharsets.UTF_8), "234");
    Suite.equal(response.getDeserializedHeaders().getContentRange(), "bytes 2-4/10");
    Suite.equal(response.getDeserializedHeaders().getContentMd5().length, 16);
  }

  void blocksAreABlobAfterTheirCommit() {
    var client = Suite.container().getBlobClient("blocks").getBlockBlobClient();
    var ids = List.of(id(0), id(1), id(2));
    for (var id : ids) {
      client.stageBlock(id, BinaryData.fromString("part " + ids.indexOf(id) + ";"));
    }
    Suite.equal(client.exists(), false);

    client.commitBlockList(List.of(ids.get(2), ids.get(0)));

    Suite.equal(Suite.text(client), "part 2;part 0;");
    var blocks = client.listBlocks(BlockListType.ALL);
    Suite.equal(blocks.getCommittedBlocks().get(0).getName(), ids.get(2));
    Suite.equal(blocks.getUncommittedBlocks().size(), 0);
    Suite.rejected(
        () -> client.commitBlockList(List.of(ids.get(1)), true), 400, "InvalidBlockList");
  }

  void aLargeBlobIsWrittenAndReadInParallelBlocks() {
    var content = new byte[9 * MEBIBYTE + 1];
    new Random(1).nextBytes(content);
    var client = Suite.container().getBlobClient("large");
    var transfer =
        new ParallelTransferOptions()
            .setBlockSizeLong((long) MEBIBYTE)
            .setMaxSingleUploadSizeLong((long) MEBIBYTE)
            .setMaxConcurrency(4);
    client.uploadWithResponse(
        new BlobParallelUploadOptions(new ByteArrayInputStream(content))
            .setParallelTransferOptions(transfer),
        null,
        null);

    Suite.equal(Arrays.equals(client.downloadContent().toBytes(), content), true);
    var blocks = client.getBlockBlobClient().listBlocks(BlockListType.COMMITTED);
    Suite.equal(blocks.getCommittedBlocks().size(), 10);
    try (var stream = client.openInputStream(new BlobRange(8L * MEBIBYTE), null)) {
      Suite.equal(stream.readAllBytes().length, MEBIBYTE + 1);
    } catch (java.io.IOException failure) {
      throw new AssertionError(failure);
    }
  }

  void conditionsDecideAboutAWrite() {
    var client = Suite.blob(Suite.container(), "blob", "first");
    var etag = client.getProperties().getETag();

    Suite.rejected(() -> upload(client, new BlobRequestConditions().setIfNoneMatch("*")), 409, "BlobAlreadyExists");
    upload(client, new BlobRequestConditions().setIfMatch(etag));
    Suite.rejected(() -> upload(client, new BlobRequestConditions().setIfMatch(etag)), 412, "ConditionNotMet");
    client.setTags(Map.of("state", "new"));
    Suite.rejected(
        () -> upload(client, new BlobRequestConditions().setTagsConditions("\"state\" = 'old'")),
        412,
        "ConditionNotMet");
  }

  void aSnapshotKeepsTheBlobAsItWas() {
    var client = Suite.blob(Suite.container(), "blob", "before");
    var snapshot = client.createSnapshot();
    client.upload(BinaryData.fromString("after"), true);

    Suite.equal(snapshot.downloadContent().toString(), "before");
    Suite.equal(Suite.text(client), "after");
    Suite.rejected(client::delete, 409, "SnapshotsPresent");
    client.deleteWithResponse(DeleteSnapshotsOptionType.INCLUDE, null, null, null);
    Suite.equal(snapshot.exists(), false);
  }

  void aLeaseProtectsABlob() {
    var client = Suite.blob(Suite.container(), "blob", "leased");
    var lease = new BlobLeaseClientBuilder().blobClient(client).buildClient();
    var other = new BlobLeaseClientBuilder().blobClient(client).buildClient();
    lease.acquireLease(60);

    Suite.rejected(() -> client.upload(BinaryData.fromString("other"), true), 412, "LeaseIdMissing");
    upload(client, new BlobRequestConditions().setLeaseId(lease.getLeaseId()));
    Suite.rejected(() -> other.acquireLease(15), 409, "LeaseAlreadyPresent");
    lease.renewLease();
    lease.changeLease("00000000-0000-4000-8000-000000000001");
    lease.releaseLease();
    other.acquireLease(-1);
    Suite.equal(other.breakLease(), 0);
    Suite.equal(Suite.text(client), "next");
  }

  void aTierIsSetAndKept() {
    var client = Suite.blob(Suite.container(), "blob", "tiered");
    client.setAccessTier(AccessTier.COOL);

    Suite.equal(client.getProperties().getAccessTier(), AccessTier.COOL);
  }

  private static void upload(
      com.azure.storage.blob.specialized.BlockBlobClient client, BlobRequestConditions conditions) {
    var next = new ByteArrayInputStream("next".getBytes(StandardCharsets.UTF_8));
    client.uploadWithResponse(next, 4, null, null, null, null, conditions, null, null);
  }

  private static String id(int number) {
    return Base64.getEncoder().encodeToString(String.format("%06d", number).getBytes(StandardCharsets.UTF_8));
  }
}
