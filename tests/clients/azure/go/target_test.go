// Checks of blobs through Microsoft's client for Go.
package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

const (
	account = "devstoreaccount1"
	// The key of every emulator, printed in its documentation; it protects nothing.
	key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	// A call that hangs fails its test.
	callTimeout = 30 * time.Second
)

var names atomic.Int64

// Each request is sent once, so that a failure is not masked by a retry.
var once = azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}

// endpoint is the address of the blob service with the account, as run.sh sets it.
func endpoint(t *testing.T) string {
	t.Helper()
	address := os.Getenv("AZURE_BLOB")
	if address == "" {
		t.Fatal("AZURE_BLOB is not set: run.sh starts a server and sets it")
	}
	return fmt.Sprintf("http://%s/%s/", address, account)
}

// serviceClient is a client with the key of the account.
func serviceClient(t *testing.T) *service.Client {
	t.Helper()
	credential, err := service.NewSharedKeyCredential(account, key)
	check(t, err)
	client, err := service.NewClientWithSharedKeyCredential(endpoint(t), credential,
		&service.ClientOptions{ClientOptions: once})
	check(t, err)
	return client
}

// newContainer is the client of an empty container of the test alone.
func newContainer(t *testing.T) *container.Client {
	t.Helper()
	client := serviceClient(t).NewContainerClient(fmt.Sprintf("go%d", names.Add(1)))
	_, err := client.Create(within(t), nil)
	check(t, err)
	return client
}

// newBlob is the client of a block blob with a content.
func newBlob(t *testing.T, in *container.Client, name string, content string) *blockblob.Client {
	t.Helper()
	client := in.NewBlockBlobClient(name)
	_, err := client.UploadBuffer(within(t), []byte(content), nil)
	check(t, err)
	return client
}

// within is the context of a call, which ends at its timeout.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	t.Cleanup(cancel)
	return ctx
}

// check fails the test for an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal fails the test if two values differ.
func equal(t *testing.T, got, expected any) {
	t.Helper()
	if !reflect.DeepEqual(got, expected) {
		t.Fatalf("got %#v, expected %#v", got, expected)
	}
}

// rejected fails the test unless the error has the status and the code.
func rejected(t *testing.T, err error, status int, code bloberror.Code) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		t.Fatalf("expected %d %s, got %v", status, code, err)
	}
	if response.StatusCode != status || response.ErrorCode != string(code) {
		t.Fatalf("expected %d %s, got %d %s", status, code, response.StatusCode, response.ErrorCode)
	}
}

// contentOf is all that a response has.
func contentOf(t *testing.T, body io.ReadCloser) string {
	t.Helper()
	content, err := io.ReadAll(body)
	check(t, err)
	check(t, body.Close())
	return string(content)
}

// textOf is the content of a block blob.
func textOf(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	response, err := client.DownloadStream(within(t), nil)
	check(t, err)
	return contentOf(t, response.Body)
}

// body is text to upload.
func body(text string) io.ReadSeekCloser {
	return streaming.NopCloser(bytes.NewReader([]byte(text)))
}

// randomBytes are the same bytes in each run.
func randomBytes(size int) []byte {
	content := make([]byte, size)
	rand.New(rand.NewSource(1)).Read(content)
	return content
}

// optional is a value with an address, as options have it.
func optional[T any](value T) *T { return to.Ptr(value) }
