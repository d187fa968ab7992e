package azure

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
)

func TestAnAppendBlobGrowsUntilItIsSealed(t *testing.T) {
	client := newContainer(t).NewAppendBlobClient("log")
	_, err := client.Create(within(t), nil)
	check(t, err)
	for number := range 3 {
		appended, err := client.AppendBlock(within(t), body(fmt.Sprintf("line %d\n", number)), nil)
		check(t, err)
		equal(t, *appended.BlobAppendOffset, fmt.Sprint(number*7))
		equal(t, *appended.BlobCommittedBlockCount, int32(number+1))
	}

	_, err = client.AppendBlock(within(t), body("x"), &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: optional(int64(7))},
	})
	rejected(t, err, http.StatusPreconditionFailed, bloberror.AppendPositionConditionNotMet)
	_, err = client.Seal(within(t), nil)
	check(t, err)
	_, err = client.AppendBlock(within(t), body("x"), nil)
	rejected(t, err, http.StatusConflict, "BlobIsSealed")
	response, err := client.DownloadStream(within(t), nil)
	check(t, err)
	equal(t, contentOf(t, response.Body), "line 0\nline 1\nline 2\n")
}

func TestABlockIsAppendedFromAnAddress(t *testing.T) {
	in := newContainer(t)
	source := newBlob(t, in, "source", "appended")
	client := in.NewAppendBlobClient("log")
	_, err := client.Create(within(t), nil)
	check(t, err)

	_, err = client.AppendBlockFromURL(within(t), readURL(t, source), nil)

	check(t, err)
	response, err := client.DownloadStream(within(t), nil)
	check(t, err)
	equal(t, contentOf(t, response.Body), "appended")
}

func TestPagesAreWrittenClearedAndListed(t *testing.T) {
	const page = 512
	client := newContainer(t).NewPageBlobClient("disk")
	_, err := client.Create(within(t), 8*page, nil)
	check(t, err)
	ones := strings.Repeat("1", 4*page)
	_, err = client.UploadPages(within(t), body(ones), blob.HTTPRange{Offset: page, Count: 4 * page}, nil)
	check(t, err)
	created, err := client.CreateSnapshot(within(t), nil)
	check(t, err)
	_, err = client.ClearPages(within(t), blob.HTTPRange{Offset: 2 * page, Count: page}, nil)
	check(t, err)

	equal(t, pageRanges(t, client), []string{"512-1023", "1536-2559"})
	changes, err := client.NewGetPageRangesDiffPager(
		&pageblob.GetPageRangesDiffOptions{PrevSnapshot: created.Snapshot}).NextPage(within(t))
	check(t, err)
	equal(t, len(changes.PageRange), 0)
	equal(t, len(changes.ClearRange), 1)
	equal(t, *changes.ClearRange[0].Start, int64(2*page))
	_, err = client.UploadPages(within(t), body("short"), blob.HTTPRange{Offset: 0, Count: 5}, nil)
	rejected(t, err, http.StatusRequestedRangeNotSatisfiable, "InvalidPageRange")
	_, err = client.Resize(within(t), 2*page, nil)
	check(t, err)
	equal(t, pageRanges(t, client), []string{"512-1023"})
}

// pageRanges are the written ranges of a page blob.
func pageRanges(t *testing.T, client *pageblob.Client) []string {
	t.Helper()
	var ranges []string
	pager := client.NewGetPageRangesPager(nil)
	for pager.More() {
		page, err := pager.NextPage(within(t))
		check(t, err)
		for _, written := range page.PageRange {
			ranges = append(ranges, fmt.Sprintf("%d-%d", *written.Start, *written.End))
		}
	}
	return ranges
}

func TestASequenceNumberDecidesAboutAPage(t *testing.T) {
	client := newContainer(t).NewPageBlobClient("disk")
	_, err := client.Create(within(t), 1024, &pageblob.CreateOptions{SequenceNumber: optional(int64(5))})
	check(t, err)
	write := func(conditions pageblob.SequenceNumberAccessConditions) error {
		_, err := client.UploadPages(within(t), body(strings.Repeat("x", 512)), blob.HTTPRange{Count: 512},
			&pageblob.UploadPagesOptions{SequenceNumberAccessConditions: &conditions})
		return err
	}

	check(t, write(pageblob.SequenceNumberAccessConditions{IfSequenceNumberEqualTo: optional(int64(5))}))
	err = write(pageblob.SequenceNumberAccessConditions{IfSequenceNumberLessThan: optional(int64(5))})
	rejected(t, err, http.StatusPreconditionFailed, bloberror.SequenceNumberConditionNotMet)
}

func TestACopyHasTheContentOfItsSource(t *testing.T) {
	in := newContainer(t)
	source := newBlob(t, in, "dir/source é", "copied")
	target := in.NewBlockBlobClient("target")

	started, err := target.StartCopyFromURL(within(t), source.URL(), nil)

	check(t, err)
	equal(t, *started.CopyStatus, blob.CopyStatusTypeSuccess)
	equal(t, textOf(t, target), "copied")
	_, err = target.AbortCopyFromURL(within(t), *started.CopyID, nil)
	rejected(t, err, http.StatusConflict, bloberror.NoPendingCopyOperation)
	_, err = target.StartCopyFromURL(within(t), in.NewBlobClient("missing").URL(), nil)
	rejected(t, err, http.StatusNotFound, bloberror.BlobNotFound)
}

func TestABlobIsWrittenFromAnAddress(t *testing.T) {
	in := newContainer(t)
	source := newBlob(t, in, "source", "from a URL")

	copied := in.NewBlockBlobClient("copied")
	_, err := copied.CopyFromURL(within(t), readURL(t, source), nil)
	check(t, err)
	equal(t, textOf(t, copied), "from a URL")
	uploaded := in.NewBlockBlobClient("uploaded")
	_, err = uploaded.UploadBlobFromURL(within(t), readURL(t, source), nil)
	check(t, err)
	equal(t, textOf(t, uploaded), "from a URL")
	staged := in.NewBlockBlobClient("staged")
	_, err = staged.StageBlockFromURL(within(t), blockID(0), readURL(t, source), nil)
	check(t, err)
	_, err = staged.CommitBlockList(within(t), []string{blockID(0)}, nil)
	check(t, err)
	equal(t, textOf(t, staged), "from a URL")
}
