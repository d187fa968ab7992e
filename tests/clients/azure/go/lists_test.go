package azure

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

var listed = []string{"a", "b/1", "b/2", "b/c/3", "d é+%", "~"}

// filled is a container with the blobs of `listed`.
func filled(t *testing.T) *container.Client {
	t.Helper()
	client := newContainer(t)
	for _, name := range listed {
		newBlob(t, client, name, "x")
	}
	return client
}

// flatNames are the names of all blobs that a list has, page by page.
func flatNames(t *testing.T, client *container.Client, options *container.ListBlobsFlatOptions) []string {
	t.Helper()
	var names []string
	pager := client.NewListBlobsFlatPager(options)
	for pager.More() {
		page, err := pager.NextPage(within(t))
		check(t, err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	return names
}

func TestBlobsAreListedPageByPage(t *testing.T) {
	client := filled(t)

	equal(t, flatNames(t, client, &container.ListBlobsFlatOptions{MaxResults: optional(int32(4))}), listed)
	equal(t, flatNames(t, client, &container.ListBlobsFlatOptions{Prefix: optional("b/")}), listed[1:4])
	equal(t, flatNames(t, client, &container.ListBlobsFlatOptions{StartFrom: optional("b/2")}), listed[2:])
}

func TestAListInArrowFallsBackToXml(t *testing.T) {
	client := filled(t)

	names := flatNames(t, client, &container.ListBlobsFlatOptions{
		MaxResults: optional(int32(4)), ResponseFormat: container.StorageResponseFormatArrow,
	})

	equal(t, names, listed)
}

func TestAListIncludesTheRequestedParts(t *testing.T) {
	client := newContainer(t)
	target := newBlob(t, client, "blob", "x")
	_, err := target.SetMetadata(within(t), map[string]*string{"key": optional("value")}, nil)
	check(t, err)
	_, err = target.SetTags(within(t), map[string]string{"tag": "t"}, nil)
	check(t, err)
	_, err = target.CreateSnapshot(within(t), nil)
	check(t, err)
	_, err = client.NewBlockBlobClient("staged").StageBlock(within(t), blockID(0), body("x"), nil)
	check(t, err)

	page, err := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Include: container.ListBlobsInclude{Metadata: true, Tags: true, Snapshots: true, UncommittedBlobs: true},
	}).NextPage(within(t))

	check(t, err)
	items := page.Segment.BlobItems
	equal(t, len(items), 3)
	equal(t, items[0].Snapshot != nil, true)
	equal(t, *items[1].Metadata["key"], "value")
	equal(t, *items[1].BlobTags.BlobTagSet[0].Value, "t")
	equal(t, *items[1].Properties.ContentLength, int64(1))
	equal(t, *items[2].Name, "staged")
}

func TestADelimiterMakesOneItemOfWhatIsBelow(t *testing.T) {
	client := filled(t)
	var names, prefixes []string
	pager := client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{
		Prefix: optional("b/"), MaxResults: optional(int32(1)),
	})

	for pager.More() {
		page, err := pager.NextPage(within(t))
		check(t, err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
		for _, item := range page.Segment.BlobPrefixes {
			prefixes = append(prefixes, *item.Name)
		}
	}

	equal(t, names, []string{"b/1", "b/2"})
	equal(t, prefixes, []string{"b/c/"})
}

func TestBlobsAreFoundByTheirTags(t *testing.T) {
	client := filled(t)
	for _, name := range listed[:2] {
		_, err := client.NewBlobClient(name).SetTags(within(t), map[string]string{"state": "new one"}, nil)
		check(t, err)
	}

	found, err := client.FilterBlobs(within(t), `"state" = 'new one'`, nil)

	check(t, err)
	equal(t, len(found.Blobs), 2)
	equal(t, *found.Blobs[1].Name, "b/1")
	where := fmt.Sprintf(`@container = '%s' AND "state" >= 'n'`, containerName(t, client))
	inAccount, err := serviceClient(t).FilterBlobs(within(t), where, nil)
	check(t, err)
	equal(t, len(inAccount.Blobs), 2)
}

func TestABatchHasAnOutcomeForEachBlob(t *testing.T) {
	client := filled(t)
	batch, err := client.NewBatchBuilder()
	check(t, err)
	for _, name := range []string{"a", "missing", "d é+%"} {
		check(t, batch.Delete(name, nil))
	}

	response, err := client.SubmitBatch(within(t), batch, nil)

	check(t, err)
	equal(t, len(response.Responses), 3)
	check(t, response.Responses[0].Error)
	rejected(t, response.Responses[1].Error, http.StatusNotFound, bloberror.BlobNotFound)
	check(t, response.Responses[2].Error)
	equal(t, flatNames(t, client, nil), []string{"b/1", "b/2", "b/c/3", "~"})
}

func TestABatchOfTheAccountSetsTiers(t *testing.T) {
	client := filled(t)
	account := serviceClient(t)
	batch, err := account.NewBatchBuilder()
	check(t, err)
	for _, name := range listed[:2] {
		check(t, batch.SetTier(containerName(t, client), name, blob.AccessTierCool, nil))
	}

	response, err := account.SubmitBatch(within(t), batch, nil)

	check(t, err)
	for _, item := range response.Responses {
		check(t, item.Error)
	}
	properties, err := client.NewBlobClient("b/1").GetProperties(within(t), nil)
	check(t, err)
	equal(t, *properties.AccessTier, "Cool")
}

func TestContainersAreListedLeasedAndDeleted(t *testing.T) {
	client := newContainer(t)
	_, err := client.SetMetadata(within(t),
		&container.SetMetadataOptions{Metadata: map[string]*string{"key": optional("value")}})
	check(t, err)
	_, err = client.Create(within(t), nil)
	rejected(t, err, http.StatusConflict, bloberror.ContainerAlreadyExists)
	page, err := serviceClient(t).NewListContainersPager(&service.ListContainersOptions{
		Prefix: optional(containerName(t, client)), Include: service.ListContainersInclude{Metadata: true},
	}).NextPage(within(t))
	check(t, err)
	equal(t, *page.ContainerItems[0].Metadata["key"], "value")
	leases, err := lease.NewContainerClient(client, nil)
	check(t, err)
	_, err = leases.AcquireLease(within(t), -1, nil)
	check(t, err)

	_, err = client.Delete(within(t), nil)
	rejected(t, err, http.StatusPreconditionFailed, bloberror.LeaseIDMissing)
	_, err = client.Delete(within(t), &container.DeleteOptions{AccessConditions: &container.AccessConditions{
		LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: leases.LeaseID()},
	}})
	check(t, err)
	_, err = client.GetProperties(within(t), nil)
	rejected(t, err, http.StatusNotFound, bloberror.ContainerNotFound)
}

func TestTheSettingsOfTheServiceSurviveARoundTrip(t *testing.T) {
	client := serviceClient(t)
	before, err := client.GetProperties(within(t), nil)
	check(t, err)
	_, err = client.SetProperties(within(t), &service.SetPropertiesOptions{
		CORS: []*service.CORSRule{{
			AllowedOrigins: optional("http://localhost"), AllowedMethods: optional("GET"),
			AllowedHeaders: optional("*"), ExposedHeaders: optional("*"), MaxAgeInSeconds: optional(int32(5)),
		}},
	})
	check(t, err)

	after, err := client.GetProperties(within(t), nil)

	check(t, err)
	equal(t, *after.CORS[0].AllowedOrigins, "http://localhost")
	_, err = client.SetProperties(within(t), &service.SetPropertiesOptions{CORS: before.CORS})
	check(t, err)
}

func TestAConditionOnTagsIsSentAndApplied(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "x")
	_, err := client.SetTags(within(t), map[string]string{"state": "new"}, nil)
	check(t, err)
	read := func(tags string, etag *azcore.ETag) error {
		_, err := client.GetProperties(within(t), &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfTags: &tags, IfMatch: etag},
		}})
		return err
	}

	check(t, read(`"state" = 'new'`, nil))
	err = read(`"state" = 'old'`, nil)

	rejected(t, err, http.StatusPreconditionFailed, bloberror.ConditionNotMet)
}
