package azure

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// readURL is the address of a blob with a signature that permits its read.
func readURL(t *testing.T, client *blockblob.Client) string {
	t.Helper()
	url, err := client.GetSASURL(sas.BlobPermissions{Read: true}, inAnHour(), nil)
	check(t, err)
	return url
}

func TestABlobSasPermitsItsOperationsOnly(t *testing.T) {
	client := newBlob(t, newContainer(t), "dir/a b é", "signed")

	signed, err := blockblob.NewClientWithNoCredential(readURL(t, client),
		&blockblob.ClientOptions{ClientOptions: once})

	check(t, err)
	equal(t, textOf(t, signed), "signed")
	_, err = signed.UploadBuffer(within(t), []byte("other"), nil)
	rejected(t, err, http.StatusForbidden, bloberror.AuthorizationPermissionMismatch)
}

func TestASnapshotSasOpensTheSnapshotOnly(t *testing.T) {
	client := newBlob(t, newContainer(t), "blob", "before")
	created, err := client.CreateSnapshot(within(t), nil)
	check(t, err)
	_, err = client.UploadBuffer(within(t), []byte("after"), nil)
	check(t, err)
	snapshot, err := client.WithSnapshot(*created.Snapshot)
	check(t, err)

	signed, err := blockblob.NewClientWithNoCredential(readURL(t, snapshot),
		&blockblob.ClientOptions{ClientOptions: once})

	check(t, err)
	equal(t, textOf(t, signed), "before")
	current, err := signed.WithSnapshot("")
	check(t, err)
	_, err = current.DownloadStream(within(t), nil)
	rejected(t, err, http.StatusForbidden, bloberror.AuthenticationFailed)
}

func TestAContainerSasWritesAndLists(t *testing.T) {
	url, err := newContainer(t).GetSASURL(
		sas.ContainerPermissions{Read: true, Write: true, List: true}, inAnHour(), nil)
	check(t, err)
	signed, err := container.NewClientWithNoCredential(url, &container.ClientOptions{ClientOptions: once})
	check(t, err)

	newBlob(t, signed, "a/b", "x")

	equal(t, flatNames(t, signed, nil), []string{"a/b"})
	_, err = signed.NewBlobClient("a/b").Delete(within(t), nil)
	rejected(t, err, http.StatusForbidden, bloberror.AuthorizationPermissionMismatch)
}

func TestAnAccountSasListsContainers(t *testing.T) {
	newContainer(t)
	url, err := serviceClient(t).GetSASURL(sas.AccountResourceTypes{Service: true},
		sas.AccountPermissions{List: true}, inAnHour(), nil)
	check(t, err)
	signed, err := service.NewClientWithNoCredential(url, &service.ClientOptions{ClientOptions: once})
	check(t, err)

	page, err := signed.NewListContainersPager(nil).NextPage(within(t))

	check(t, err)
	equal(t, len(page.ContainerItems) > 0, true)
	_, err = signed.CreateContainer(within(t), "other", nil)
	rejected(t, err, http.StatusForbidden, bloberror.AuthorizationResourceTypeMismatch)
}

func TestAStoredPolicyGrantsAndRevokesAccess(t *testing.T) {
	in := newContainer(t)
	newBlob(t, in, "blob", "by policy")
	set := func(policies ...*container.SignedIdentifier) {
		_, err := in.SetAccessPolicy(within(t), &container.SetAccessPolicyOptions{ContainerACL: policies})
		check(t, err)
	}
	set(&container.SignedIdentifier{
		ID: optional("readers"),
		AccessPolicy: &container.AccessPolicy{
			Expiry: optional(inAnHour().UTC().Truncate(time.Second)), Permission: optional("r"),
		},
	})
	credential, err := blob.NewSharedKeyCredential(account, key)
	check(t, err)
	query, err := sas.BlobSignatureValues{
		ContainerName: containerName(t, in), Identifier: "readers",
	}.SignWithSharedKey(credential)
	check(t, err)
	signed, err := blockblob.NewClientWithNoCredential(
		in.NewBlobClient("blob").URL()+"?"+query.Encode(), &blockblob.ClientOptions{ClientOptions: once})
	check(t, err)

	equal(t, textOf(t, signed), "by policy")
	policies, err := in.GetAccessPolicy(within(t), nil)
	check(t, err)
	equal(t, *policies.SignedIdentifiers[0].AccessPolicy.Permission, "r")
	set()
	_, err = signed.DownloadStream(within(t), nil)
	rejected(t, err, http.StatusForbidden, bloberror.AuthenticationFailed)
}

func TestThePublicReadsWhatAContainerOpens(t *testing.T) {
	in := newContainer(t)
	private := newBlob(t, in, "blob", "public")
	anonymous, err := blockblob.NewClientWithNoCredential(private.URL(),
		&blockblob.ClientOptions{ClientOptions: once})
	check(t, err)
	_, err = anonymous.DownloadStream(within(t), nil)
	rejected(t, err, http.StatusUnauthorized, bloberror.NoAuthenticationInformation)

	_, err = in.SetAccessPolicy(within(t),
		&container.SetAccessPolicyOptions{Access: optional(container.PublicAccessTypeBlob)})

	check(t, err)
	equal(t, textOf(t, anonymous), "public")
}

func TestAWrongKeyIsRejected(t *testing.T) {
	credential, err := service.NewSharedKeyCredential(account, "d3Jvbmc=")
	check(t, err)
	client, err := service.NewClientWithSharedKeyCredential(endpoint(t), credential,
		&service.ClientOptions{ClientOptions: once})
	check(t, err)

	_, err = client.CreateContainer(within(t), "never", nil)

	rejected(t, err, http.StatusForbidden, bloberror.AuthenticationFailed)
}

// containerName is the last part of the address of a container.
func containerName(t *testing.T, client *container.Client) string {
	t.Helper()
	parts, err := sas.ParseURL(client.URL())
	check(t, err)
	return parts.ContainerName
}
