import com.azure.core.http.rest.PagedIterable;
import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobContainerClientBuilder;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.batch.BlobBatchStorageException;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.PublicAccessType;
import com.azure.storage.blob.sas.BlobContainerSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.SpecializedBlobClientBuilder;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;

/** Lists, tags, batches, signatures and containers. */
final class ListChecks {
  private static final List<String> NAMES = List.of("a", "b/1", "b/2", "b/c/3", "d é+%", "~");

  void blobsAreListedPageByPage() {
    var container = filled();
    var pages = container.listBlobs(new ListBlobsOptions().setMaxResultsPerPage(4), null);

    Suite.equal(names(pages), NAMES);
    Suite.equal(pages.streamByPage().count(), 2L);
    Suite.equal(names(container.listBlobs(new ListBlobsOptions().setPrefix("b/"), null)), NAMES.subList(1, 4));
  }

  void aDelimiterMakesOneItemOfWhatIsBelow() {
    Suite.equal(names(filled().listBlobsByHierarchy("b/")), List.of("b/1", "b/2", "b/c/"));
  }

  void aListIncludesTheRequestedParts() {
    var container = Suite.container();
    var blob = Suite.blob(container, "blob", "x");
    blob.setMetadata(Map.of("key", "value"));
    blob.setTags(Map.of("tag", "t"));
    blob.createSnapshot();
    var details =
        new BlobListDetails().setRetrieveMetadata(true).setRetrieveTags(true).setRetrieveSnapshots(true);

    var items = container.listBlobs(new ListBlobsOptions().setDetails(details), null).stream().toList();

    Suite.equal(items.size(), 2);
    Suite.equal(items.get(0).getSnapshot() == null, false);
    Suite.equal(items.get(1).getMetadata(), Map.of("key", "value"));
    Suite.equal(items.get(1).getTags(), Map.of("tag", "t"));
  }

  void blobsAreFoundByTheirTags() {
    var container = filled();
    for (var name : NAMES.subList(0, 2)) {
      container.getBlobClient(name).setTags(Map.of("language", "java"));
    }

    var found = container.findBlobsByTags("\"language\" = 'java'").stream().toList();

    Suite.equal(found.stream().map(item -> item.getName()).toList(), NAMES.subList(0, 2));
    var where = "@container = '" + container.getBlobContainerName() + "' AND \"language\" >= 'j'";
    Suite.equal(Suite.service().findBlobsByTags(where).stream().count(), 2L);
  }

  void aBatchHasAnOutcomeForEachBlob() {
    var container = filled();
    var client = new BlobBatchClientBuilder(Suite.service()).buildClient();
    var urls = List.of("a", "missing", "d é+%").stream().map(name -> url(container, name)).toList();

    try {
      client.deleteBlobs(urls, DeleteSnapshotsOptionType.INCLUDE).forEach(response -> {});
      throw new AssertionError("expected the failure of one blob");
    } catch (BlobBatchStorageException failure) {
      var codes = new java.util.ArrayList<String>();
      failure.getBatchExceptions().forEach(item -> codes.add(item.getErrorCode().toString()));
      Suite.equal(codes, List.of("BlobNotFound"));
    }
    Suite.equal(names(container.listBlobs()), List.of("b/1", "b/2", "b/c/3", "~"));
    client.setBlobsAccessTier(List.of(url(container, "b/1")), AccessTier.COOL).forEach(response -> {});
    Suite.equal(container.getBlobClient("b/1").getProperties().getAccessTier(), AccessTier.COOL);
  }

  void aBlobSasPermitsItsOperationsOnly() {
    var url = KindChecks.readUrl(Suite.blob(Suite.container(), "dir/a b é", "signed"));
    var signed = new SpecializedBlobClientBuilder().endpoint(url).retryOptions(Suite.ONCE).buildBlockBlobClient();

    Suite.equal(Suite.text(signed), "signed");
    Suite.rejected(
        () -> signed.upload(BinaryData.fromString("x"), true), 403, "AuthorizationPermissionMismatch");
  }

  void aStoredPolicyGrantsAndRevokesAccess() {
    var container = Suite.container();
    Suite.blob(container, "blob", "by policy");
    var policy = new BlobAccessPolicy().setExpiresOn(OffsetDateTime.now().plusHours(1)).setPermissions("rl");
    container.setAccessPolicy(null, List.of(new BlobSignedIdentifier().setId("readers").setAccessPolicy(policy)));
    var token = container.generateSas(new BlobServiceSasSignatureValues("readers"));
    var signed = opened(container, token);

    Suite.equal(names(signed.listBlobs()), List.of("blob"));
    container.setAccessPolicy(null, List.of());
    Suite.rejected(() -> names(signed.listBlobs()), 403, "AuthenticationFailed");
  }

  void aContainerSasIsLimitedToItsPermissions() {
    var container = filled();
    var permission = new BlobContainerSasPermission().setListPermission(true);
    var values = new BlobServiceSasSignatureValues(OffsetDateTime.now().plusHours(1), permission);
    var signed = opened(container, container.generateSas(values));

    Suite.equal(names(signed.listBlobs()), NAMES);
    Suite.rejected(signed.getBlobClient("a")::downloadContent, 403, "AuthorizationPermissionMismatch");
  }

  void thePublicReadsWhatAContainerOpens() {
    var container = Suite.container();
    var blob = Suite.blob(container, "blob", "public");
    BlobClientBase anonymous =
        new SpecializedBlobClientBuilder()
            .endpoint(blob.getBlobUrl())
            .retryOptions(Suite.ONCE)
            .setAnonymousAccess()
            .buildBlockBlobClient();
    Suite.rejected(anonymous::downloadContent, 401, "NoAuthenticationInformation");

    container.setAccessPolicy(PublicAccessType.BLOB, List.of());

    Suite.equal(anonymous.downloadContent().toString(), "public");
  }

  void containersAreDescribedListedAndDeleted() {
    var container = Suite.container();
    container.setMetadata(Map.of("key", "value"));

    Suite.rejected(container::create, 409, "ContainerAlreadyExists");
    Suite.equal(container.getProperties().getMetadata(), Map.of("key", "value"));
    var listed = Suite.service().listBlobContainers().stream().map(item -> item.getName()).toList();
    Suite.equal(listed.contains(container.getBlobContainerName()), true);
    container.delete();
    Suite.equal(container.exists(), false);
  }

  private static BlobContainerClient filled() {
    var container = Suite.container();
    NAMES.forEach(name -> Suite.blob(container, name, "x"));
    return container;
  }

  private static BlobContainerClient opened(BlobContainerClient container, String token) {
    return new BlobContainerClientBuilder()
        .endpoint(container.getBlobContainerUrl())
        .sasToken(token)
        .retryOptions(Suite.ONCE)
        .buildClient();
  }

  private static String url(BlobContainerClient container, String name) {
    return container.getBlobClient(name).getBlobUrl();
  }

  private static List<String> names(PagedIterable<BlobItem> items) {
    return items.stream().map(BlobItem::getName).toList();
  }
}
