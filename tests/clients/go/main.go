// A program on the clients that protoc generates from the unmodified contract: every kind of call.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	_ "google.golang.org/grpc/health"
	"google.golang.org/grpc/status"

	queuev1 "trestle.dev/gen/go/trestle/queue/v1"
	tablev1 "trestle.dev/gen/go/trestle/table/v1"
)

const rows = 100

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: client ADDRESS SERVICE_CONFIG")
	}
	config, err := os.ReadFile(os.Args[2])
	check(err)
	for _, compressor := range []string{"identity", "gzip"} {
		connection, err := grpc.NewClient(os.Args[1],
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(string(config)),
			grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor)))
		check(err)
		context, cancel := context.WithTimeout(context.Background(), time.Minute)
		tables(context, tablev1.NewTableServiceClient(connection), "orders"+compressor)
		queues(context, queuev1.NewQueueServiceClient(connection), "jobs-"+compressor)
		cancel()
		check(connection.Close())
	}
	fmt.Println("2 passed, 0 failed")
}

func tables(ctx context.Context, client tablev1.TableServiceClient, table string) {
	_, err := client.CreateTable(ctx, &tablev1.CreateTableRequest{Table: &tablev1.Table{Name: table}})
	check(err)
	_, err = client.InsertEntity(ctx, &tablev1.InsertEntityRequest{Table: table, Entity: entity(0)})
	check(err)

	var operations []*tablev1.BatchOperation
	for row := 1; row < rows; row++ {
		insert := &tablev1.BatchOperation_Insert{Insert: &tablev1.BatchInsert{Entity: entity(row)}}
		operations = append(operations, &tablev1.BatchOperation{Operation: insert})
	}
	batch, err := client.ExecuteBatch(ctx,
		&tablev1.ExecuteBatchRequest{Table: table, Operations: operations})
	check(err)
	expect(len(batch.Results) == rows-1, "a result for each operation")

	stream, err := client.StreamEntities(ctx,
		&tablev1.StreamEntitiesRequest{Table: table, Filter: "number ge 50"})
	check(err)
	streamed := 0
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		check(err)
		for _, entity := range message.Entities {
			expect(entity.Properties["number"].GetInt32Value() >= 50, "the filter applies")
			streamed++
		}
	}
	expect(streamed == rows/2, "half of the entities match")

	_, err = client.InsertEntity(ctx, &tablev1.InsertEntityRequest{Table: table, Entity: entity(0)})
	rejected(err, codes.AlreadyExists, "ENTITY_ALREADY_EXISTS", "trestle.table.v1.TableService")
	key := &tablev1.DeleteEntityRequest{Table: table, PartitionKey: "p", RowKey: "000"}
	_, err = client.DeleteEntity(ctx, key)
	check(err)
	_, err = client.DeleteEntity(ctx, key)
	rejected(err, codes.NotFound, "RESOURCE_NOT_FOUND", "trestle.table.v1.TableService")
}

func queues(ctx context.Context, client queuev1.QueueServiceClient, queue string) {
	_, err := client.CreateQueue(ctx, &queuev1.CreateQueueRequest{Queue: &queuev1.Queue{Name: queue}})
	check(err)
	message := &queuev1.OutgoingMessage{Body: &queuev1.OutgoingMessage_Text{Text: "hello"}}
	sent, err := client.SendMessages(ctx,
		&queuev1.SendMessagesRequest{Queue: queue, Messages: []*queuev1.OutgoingMessage{message}})
	check(err)
	expect(sent.Results[0].GetError() == nil, "the message is sent")

	received, err := client.ReceiveMessages(ctx, &queuev1.ReceiveMessagesRequest{Queue: queue})
	check(err)
	expect(len(received.Deliveries) == 1, "one message")
	delivery := received.Deliveries[0]
	expect(delivery.Message.GetText() == "hello", "the body of the message")
	receipt := &queuev1.ReceiptRef{
		MessageId:  delivery.Message.MessageId,
		PopReceipt: delivery.PopReceipt,
	}
	remove := &queuev1.DeleteMessagesRequest{Queue: queue, Receipts: []*queuev1.ReceiptRef{receipt}}
	deleted, err := client.DeleteMessages(ctx, remove)
	check(err)
	expect(deleted.Results[0].Error == nil, "the message is deleted")
	again, err := client.DeleteMessages(ctx, remove)
	check(err)
	// A call that succeeds, and an item that failed.
	rejected(status.ErrorProto(again.Results[0].Error), codes.NotFound, "MESSAGE_NOT_FOUND",
		"trestle.queue.v1.QueueService")
}

func entity(row int) *tablev1.Entity {
	number := &tablev1.Value{Kind: &tablev1.Value_Int32Value{Int32Value: int32(row)}}
	return &tablev1.Entity{
		PartitionKey: "p",
		RowKey:       fmt.Sprintf("%03d", row),
		Properties:   map[string]*tablev1.Value{"number": number},
	}
}

func rejected(err error, code codes.Code, reason, domain string) {
	failure := status.Convert(err)
	expect(failure.Code() == code, "the code of "+reason)
	for _, detail := range failure.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			expect(info.Reason == reason, "the reason "+reason)
			expect(info.Domain == domain, "the domain of "+reason)
			return
		}
	}
	expect(false, "ErrorInfo of "+reason)
}

func check(err error) {
	if err != nil {
		log.Fatalf("a call failed: %v", err)
	}
}

func expect(holds bool, what string) {
	if !holds {
		log.Fatalf("does not hold: %s", what)
	}
}
