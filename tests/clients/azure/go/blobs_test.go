package azure

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

const mebibyte = 1 << 20

func blockID(number int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%06d", number))
}

func TestABlobIsReadAsItWasWritten(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("dir/a b+c é%.txt")
	_, err := client.UploadBuffer(within(t), []byte("hello"), &blockblob.UploadBufferOptions{
		HTTPHeaders: &blob.HTTPHeaders{
			BlobContentType:  optional("text/plain"),
			BlobCacheControl: optional("no-cache"),
		},
		Metadata: map[string]*string{"key": optional("value")},
		Tags:     map[string]string{"project": "a b", "k": ""},
	})
	check(t, err)

	properties, err := client.GetProperties(within(t), nil)
	check(t, err)
	equal(t, *properties.ContentLength, int64(5))
	equal(t, *properties.ContentType, "text/plain")
	equal(t, *properties.CacheControl, "no-cache")
	equal(t, *properties.TagCount, int64(2))
	equal(t, *properties.BlobType, blob.BlobTypeBlockBlob)
	equal(t, len(properties.Metadata), 1)
	equal(t, textOf(t, client), "hello")
	tags, err := client.GetTags(within(t), nil)
	check(t, err)
	equal(t, len(tags.BlobTagSet), 2)
	_, err = client.Delete(within(t), nil)
	check(t, err)
	_, err = client.GetProperties(within(t), nil)
	rejected(t, err, http.StatusNotFound, bloberror.BlobNotFound)
}

func TestARangeIsReadWithItsChecksum(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "0123456789")

	response, err := client.DownloadStream(within(t), &blob.DownloadStreamOptions{
		Range:              blob.HTTPRange{Offset: 2, Count: 3},
		RangeGetContentMD5: optional(true),
	})

	check(t, err)
	equal(t, *response.ContentRange, "bytes 2-4/10")
	sum := md5.Sum([]byte("234"))
	equal(t, response.ContentMD5, sum[:])
	equal(t, contentOf(t, response.Body), "234")
	_, err = client.DownloadStream(within(t), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 10}})
	rejected(t, err, http.StatusRequestedRangeNotSatisfiable, bloberror.InvalidRange)
}

func TestBlocksAreABlobAfterTheirCommit(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("blocks")
	ids := []string{blockID(0), blockID(1), blockID(2)}
	for number, id := range ids {
		_, err := client.StageBlock(within(t), id, body(fmt.Sprintf("part %d;", number)),
			&blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
		check(t, err)
	}
	_, err := client.GetProperties(within(t), nil)
	rejected(t, err, http.StatusNotFound, bloberror.BlobNotFound)

	_, err = client.CommitBlockList(within(t), []string{ids[2], ids[0]}, nil)
	check(t, err)

	equal(t, textOf(t, client), "part 2;part 0;")
	list, err := client.GetBlockList(within(t), blockblob.BlockListTypeAll, nil)
	check(t, err)
	equal(t, len(list.CommittedBlocks), 2)
	equal(t, *list.CommittedBlocks[0].Name, ids[2])
	equal(t, *list.CommittedBlocks[0].Size, int64(7))
	equal(t, len(list.UncommittedBlocks), 0)
	_, err = client.CommitBlockList(within(t), []string{ids[1]}, nil)
	rejected(t, err, http.StatusBadRequest, bloberror.InvalidBlockList)
}

func TestABlockWithAnotherChecksumIsRejected(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("blocks")

	_, err := client.StageBlock(within(t), blockID(0), body("part"), &blockblob.StageBlockOptions{
		TransactionalValidation: blob.TransferValidationTypeMD5(make([]byte, md5.Size)),
	})
	rejected(t, err, http.StatusBadRequest, bloberror.MD5Mismatch)
	_, err = client.StageBlock(within(t), blockID(0), body("part"), &blockblob.StageBlockOptions{
		TransactionalValidation: blob.TransferValidationTypeCRC64(1),
	})
	rejected(t, err, http.StatusBadRequest, "Crc64Mismatch")
}

func TestALargeBlobIsWrittenAndReadInParallelBlocks(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("large")
	content := randomBytes(9*mebibyte + 1)
	_, err := client.UploadStream(within(t), bytes.NewReader(content),
		&blockblob.UploadStreamOptions{BlockSize: mebibyte, Concurrency: 4})
	check(t, err)

	read := make([]byte, len(content))
	size, err := client.DownloadBuffer(within(t), read,
		&blob.DownloadBufferOptions{BlockSize: 2 * mebibyte, Concurrency: 4})

	check(t, err)
	equal(t, size, int64(len(content)))
	equal(t, bytes.Equal(read, content), true)
	list, err := client.GetBlockList(within(t), blockblob.BlockListTypeCommitted, nil)
	check(t, err)
	equal(t, len(list.CommittedBlocks), 10)
}

func TestAFileIsUploadedAndDownloaded(t *testing.T) {
	client := newContainer(t).NewBlockBlobClient("file")
	content := randomBytes(5*mebibyte + 3)
	from := filepath.Join(t.TempDir(), "from")
	check(t, os.WriteFile(from, content, 0o600))
	source, err := os.Open(from)
	check(t, err)
	defer source.Close()
	_, err = client.UploadFile(within(t), source, &blockblob.UploadFileOptions{BlockSize: mebibyte})
	check(t, err)

	target, err := os.Create(filepath.Join(t.TempDir(), "to"))
	check(t, err)
	defer target.Close()
	_, err = client.DownloadFile(within(t), target, &blob.DownloadFileOptions{BlockSize: mebibyte})

	check(t, err)
	read, err := os.ReadFile(target.Name())
	check(t, err)
	equal(t, bytes.Equal(read, content), true)
}

func TestConditionsDecideAboutAWrite(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "first")
	properties, err := client.GetProperties(within(t), nil)
	check(t, err)
	upload := func(conditions *blob.ModifiedAccessConditions) error {
		_, err := client.UploadBuffer(within(t), []byte("next"), &blockblob.UploadBufferOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: conditions},
		})
		return err
	}

	err = upload(&blob.ModifiedAccessConditions{IfNoneMatch: optional(azcore.ETagAny)})
	rejected(t, err, http.StatusConflict, bloberror.BlobAlreadyExists)
	check(t, upload(&blob.ModifiedAccessConditions{IfMatch: properties.ETag}))
	err = upload(&blob.ModifiedAccessConditions{IfMatch: properties.ETag})
	rejected(t, err, http.StatusPreconditionFailed, bloberror.ConditionNotMet)
	past := time.Now().Add(-time.Hour)
	err = upload(&blob.ModifiedAccessConditions{IfUnmodifiedSince: &past})
	rejected(t, err, http.StatusPreconditionFailed, bloberror.ConditionNotMet)
}

func TestASnapshotKeepsTheBlobAsItWas(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "before")
	created, err := client.CreateSnapshot(within(t), nil)
	check(t, err)
	_, err = client.UploadBuffer(within(t), []byte("after"), nil)
	check(t, err)

	snapshot, err := client.WithSnapshot(*created.Snapshot)
	check(t, err)
	equal(t, textOf(t, snapshot), "before")
	equal(t, textOf(t, client), "after")
	_, err = client.Delete(within(t), nil)
	rejected(t, err, http.StatusConflict, bloberror.SnapshotsPresent)
	_, err = client.Delete(within(t),
		&blob.DeleteOptions{DeleteSnapshots: optional(blob.DeleteSnapshotsOptionTypeInclude)})
	check(t, err)
	_, err = snapshot.DownloadStream(within(t), nil)
	rejected(t, err, http.StatusNotFound, bloberror.BlobNotFound)
}

func TestALeaseProtectsABlob(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "leased")
	leases, err := lease.NewBlobClient(client, nil)
	check(t, err)
	acquired, err := leases.AcquireLease(within(t), 60, nil)
	check(t, err)

	_, err = client.UploadBuffer(within(t), []byte("other"), nil)
	rejected(t, err, http.StatusPreconditionFailed, bloberror.LeaseIDMissing)
	_, err = client.UploadBuffer(within(t), []byte("own"), &blockblob.UploadBufferOptions{
		AccessConditions: &blob.AccessConditions{
			LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: acquired.LeaseID},
		},
	})
	check(t, err)
	other, err := lease.NewBlobClient(client, nil)
	check(t, err)
	_, err = other.AcquireLease(within(t), 15, nil)
	rejected(t, err, http.StatusConflict, bloberror.LeaseAlreadyPresent)
	_, err = leases.RenewLease(within(t), nil)
	check(t, err)
	_, err = leases.ChangeLease(within(t), "00000000-0000-4000-8000-000000000001", nil)
	check(t, err)
	broken, err := leases.BreakLease(within(t), &lease.BlobBreakOptions{BreakPeriod: optional(int32(0))})
	check(t, err)
	equal(t, *broken.LeaseTime, int32(0))
	_, err = other.AcquireLease(within(t), -1, nil)
	check(t, err)
	_, err = other.ReleaseLease(within(t), nil)
	check(t, err)
	equal(t, textOf(t, client), "own")
}

func TestATierIsSetAndKept(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "tiered")
	_, err := client.SetTier(within(t), blob.AccessTierCool, nil)
	check(t, err)

	properties, err := client.GetProperties(within(t), nil)

	check(t, err)
	equal(t, *properties.AccessTier, "Cool")
}
