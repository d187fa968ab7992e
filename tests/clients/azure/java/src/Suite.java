import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

/** Checks of blobs through Microsoft's client for Java: runs every method of the classes below. */
public final class Suite {
  static final String ACCOUNT = "devstoreaccount1";
  /** The key of every emulator, printed in its documentation; it protects nothing. */
  static final String KEY =
      "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
  /** Each request is sent once, so that a failure is not masked by a retry; a call that hangs ends after 30 s. */
  static final RequestRetryOptions ONCE =
      new RequestRetryOptions(RetryPolicyType.FIXED, 1, 30, null, null, null);

  private static final AtomicInteger NAMES = new AtomicInteger();
  private static String endpoint;

  public static void main(String[] arguments) {
    endpoint = "http://" + arguments[0] + "/" + ACCOUNT;
    int passed = 0;
    int failed = 0;
    for (Object checks : List.of(new BlobChecks(), new KindChecks(), new ListChecks())) {
      var methods = Arrays.asList(checks.getClass().getDeclaredMethods());
      methods.sort(Comparator.comparing(method -> method.getName()));
      for (var method : methods) {
        if (Modifier.isStatic(method.getModifiers()) || method.isSynthetic()) {
          continue;
        }
        try {
          method.invoke(checks);
          passed++;
        } catch (ReflectiveOperationException failure) {
          System.out.println("failed: " + checks.getClass().getSimpleName() + "." + method.getName());
          failure.getCause().printStackTrace(System.out);
          failed++;
        }
      }
    }
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }

  /** The client of the service with the key of the account. */
  static BlobServiceClient service() {
    return builder().credential(new StorageSharedKeyCredential(ACCOUNT, KEY)).buildClient();
  }

  /** What makes clients of the service. */
  static BlobServiceClientBuilder builder() {
    return new BlobServiceClientBuilder().endpoint(endpoint).retryOptions(ONCE);
  }

  /** The client of an empty container of the check alone. */
  static BlobContainerClient container() {
    return service().createBlobContainer("java" + NAMES.incrementAndGet());
  }

  /** The client of a block blob with a content. */
  static BlockBlobClient blob(BlobContainerClient container, String name, String content) {
    var client = container.getBlobClient(name);
    client.upload(BinaryData.fromString(content));
    return client.getBlockBlobClient();
  }

  /** The content of a blob. */
  static String text(BlockBlobClient blob) {
    return blob.downloadContent().toString();
  }

  /** Fails unless two values are equal. */
  static void equal(Object got, Object expected) {
    if (!Objects.equals(got, expected)) {
      throw new AssertionError("got " + got + ", expected " + expected);
    }
  }

  /** Fails unless the call fails with the status and the code. */
  static void rejected(Runnable call, int status, String code) {
    try {
      call.run();
    } catch (BlobStorageException failure) {
      equal(failure.getStatusCode() + " " + failure.getErrorCode(), status + " " + code);
      return;
    }
    throw new AssertionError("expected " + status + " " + code + ", got a success");
  }
}
