import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import dev.trestle.queue.v1.CreateQueueRequest;
import dev.trestle.queue.v1.DeleteMessagesRequest;
import dev.trestle.queue.v1.Delivery;
import dev.trestle.queue.v1.OutgoingMessage;
import dev.trestle.queue.v1.Queue;
import dev.trestle.queue.v1.QueueServiceGrpc;
import dev.trestle.queue.v1.ReceiptRef;
import dev.trestle.queue.v1.ReceiveMessagesRequest;
import dev.trestle.queue.v1.SendMessagesRequest;
import dev.trestle.table.v1.BatchInsert;
import dev.trestle.table.v1.BatchOperation;
import dev.trestle.table.v1.CreateTableRequest;
import dev.trestle.table.v1.DeleteEntityRequest;
import dev.trestle.table.v1.Entity;
import dev.trestle.table.v1.ExecuteBatchRequest;
import dev.trestle.table.v1.InsertEntityRequest;
import dev.trestle.table.v1.StreamEntitiesRequest;
import dev.trestle.table.v1.StreamEntitiesResponse;
import dev.trestle.table.v1.Table;
import dev.trestle.table.v1.TableServiceGrpc;
import dev.trestle.table.v1.Value;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;

/** A program on the clients that protoc generates from the unmodified contract: every kind of call. */
public final class Client {
  private static final int ROWS = 100;
  private static final String TABLES = "trestle.table.v1.TableService";
  private static final String QUEUES = "trestle.queue.v1.QueueService";

  public static void main(String[] arguments) throws Exception {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
    for (String compressor : new String[] {"identity", "gzip"}) {
      tables(
          TableServiceGrpc.newBlockingStub(channel)
              .withCompression(compressor)
              .withDeadlineAfter(1, TimeUnit.MINUTES),
          "orders" + compressor);
      queues(
          QueueServiceGrpc.newBlockingStub(channel)
              .withCompression(compressor)
              .withDeadlineAfter(1, TimeUnit.MINUTES),
          "jobs-" + compressor);
    }
    channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
    System.out.println("2 passed, 0 failed");
  }

  private static void tables(TableServiceGrpc.TableServiceBlockingStub client, String name) {
    Table table = Table.newBuilder().setName(name).build();
    client.createTable(CreateTableRequest.newBuilder().setTable(table).build());
    InsertEntityRequest insert =
        InsertEntityRequest.newBuilder().setTable(name).setEntity(entity(0)).build();
    client.insertEntity(insert);

    ExecuteBatchRequest.Builder batch = ExecuteBatchRequest.newBuilder().setTable(name);
    for (int row = 1; row < ROWS; row++) {
      BatchInsert.Builder operation = BatchInsert.newBuilder().setEntity(entity(row));
      batch.addOperations(BatchOperation.newBuilder().setInsert(operation));
    }
    expect(client.executeBatch(batch.build()).getResultsCount() == ROWS - 1, "a result for each");

    StreamEntitiesRequest half =
        StreamEntitiesRequest.newBuilder().setTable(name).setFilter("number ge 50").build();
    int streamed = 0;
    for (Iterator<StreamEntitiesResponse> stream = client.streamEntities(half); stream.hasNext(); ) {
      for (Entity entity : stream.next().getEntitiesList()) {
        expect(entity.getPropertiesOrThrow("number").getInt32Value() >= 50, "the filter applies");
        streamed++;
      }
    }
    expect(streamed == ROWS / 2, "half of the entities match");

    rejected(() -> client.insertEntity(insert), Code.ALREADY_EXISTS, "ENTITY_ALREADY_EXISTS");
    DeleteEntityRequest delete =
        DeleteEntityRequest.newBuilder()
            .setTable(name)
            .setPartitionKey("p")
            .setRowKey("000")
            .build();
    client.deleteEntity(delete);
    rejected(() -> client.deleteEntity(delete), Code.NOT_FOUND, "RESOURCE_NOT_FOUND");
  }

  private static void queues(QueueServiceGrpc.QueueServiceBlockingStub client, String name) {
    Queue queue = Queue.newBuilder().setName(name).build();
    client.createQueue(CreateQueueRequest.newBuilder().setQueue(queue).build());
    SendMessagesRequest.Builder send =
        SendMessagesRequest.newBuilder()
            .setQueue(name)
            .addMessages(OutgoingMessage.newBuilder().setText("hello"));
    expect(!client.sendMessages(send.build()).getResults(0).hasError(), "the message is sent");

    ReceiveMessagesRequest receive = ReceiveMessagesRequest.newBuilder().setQueue(name).build();
    Delivery delivery = client.receiveMessages(receive).getDeliveries(0);
    expect(delivery.getMessage().getText().equals("hello"), "the body of the message");
    ReceiptRef.Builder receipt =
        ReceiptRef.newBuilder()
            .setMessageId(delivery.getMessage().getMessageId())
            .setPopReceipt(delivery.getPopReceipt());
    DeleteMessagesRequest delete =
        DeleteMessagesRequest.newBuilder().setQueue(name).addReceipts(receipt).build();
    expect(!client.deleteMessages(delete).getResults(0).hasError(), "the message is deleted");
    // A call that succeeds, and an item that failed.
    Status failed = client.deleteMessages(delete).getResults(0).getError();
    expect(failed.getCode() == Code.NOT_FOUND.value(), "the code of an item");
    explained(failed, "MESSAGE_NOT_FOUND", QUEUES);
  }

  private static Entity entity(int row) {
    return Entity.newBuilder()
        .setPartitionKey("p")
        .setRowKey(String.format("%03d", row))
        .putProperties("number", Value.newBuilder().setInt32Value(row).build())
        .build();
  }

  private static void rejected(Runnable call, Code code, String reason) {
    try {
      call.run();
    } catch (StatusRuntimeException failure) {
      expect(failure.getStatus().getCode() == code, "the code of " + reason);
      explained(StatusProto.fromThrowable(failure), reason, TABLES);
      return;
    }
    expect(false, reason);
  }

  private static void explained(Status status, String reason, String domain) {
    try {
      ErrorInfo info = status.getDetails(0).unpack(ErrorInfo.class);
      expect(info.getReason().equals(reason), "the reason " + reason);
      expect(info.getDomain().equals(domain), "the domain of " + reason);
    } catch (InvalidProtocolBufferException failure) {
      throw new AssertionError(failure);
    }
  }

  private static void expect(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("does not hold: " + what);
    }
  }
}
