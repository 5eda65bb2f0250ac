package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vapi/library"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/vcenter"
)

const descriptor = `<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1"
  xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1">
  <NetworkSection><Info/><Network ovf:name="nat"/></NetworkSection>
  <VirtualSystem ovf:id="vm"><Info/><Name>image</Name>
    <EulaSection><Info/><License>Terms</License></EulaSection>
    <ProductSection><Info/><Property ovf:key="user-data" ovf:type="string" ovf:userConfigurable="true"/>
      <Property ovf:key="fixed" ovf:type="string"/></ProductSection>
  </VirtualSystem>
</Envelope>`

// call returns the status and the answer of a request below /api.
func (r *running) call(token, method, path, body string) (int, map[string]any, []any) {
	r.t.Helper()
	u := r.url()
	u.Path = path
	if at := bytes.IndexByte([]byte(path), '?'); at >= 0 {
		u.Path, u.RawQuery = path[:at], path[at+1:]
	}
	u.User = nil
	req, err := http.NewRequestWithContext(r.ctx, method, u.String(), bytes.NewBufferString(body))
	r.must(err)
	req.Header.Set("vmware-api-session-id", token)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	res, err := client.Do(req)
	r.must(err)
	defer func() { _ = res.Body.Close() }()
	var answer any
	_ = json.NewDecoder(res.Body).Decode(&answer)
	object, _ := answer.(map[string]any)
	list, _ := answer.([]any)
	return res.StatusCode, object, list
}

// A library that govmomi fills over the older paths is the same below /api, with what vcsim leaves out.
func TestALibraryIsTheSameBelowBothPaths(t *testing.T) {
	r := launch(t, "")
	c := rest.NewClient(r.c.Client)
	r.must(c.Login(r.ctx, r.url().User))
	store, err := find.NewFinder(r.c.Client).DefaultDatastore(r.ctx)
	r.must(err)
	m := library.NewManager(c)
	id, err := m.CreateLibrary(r.ctx, library.Library{Name: "images", Type: "LOCAL",
		Storage: []library.StorageBacking{{DatastoreID: store.Reference().Value, Type: "DATASTORE"}}})
	r.must(err)
	item, err := m.CreateLibraryItem(r.ctx, library.Item{Name: "image", Type: library.ItemTypeOVF, LibraryID: id})
	r.must(err)
	path := filepath.Join(t.TempDir(), "image.ovf")
	r.must(os.WriteFile(path, []byte(descriptor), 0o600))
	session, err := m.CreateLibraryItemUpdateSession(r.ctx, library.Session{LibraryItemID: item})
	r.must(err)
	_, err = m.AddLibraryItemFile(r.ctx, session, library.UpdateFile{Name: "image.ovf", SourceType: "PUSH"})
	r.must(err)
	info, err := m.GetLibraryItemUpdateSessionFile(r.ctx, session, "image.ovf")
	r.must(err)
	f, err := os.Open(path)
	r.must(err)
	stat, err := f.Stat()
	r.must(err)
	upload, err := http.NewRequestWithContext(r.ctx, http.MethodPut, info.UploadEndpoint.URI, f)
	r.must(err)
	upload.ContentLength = stat.Size()
	r.must(c.Do(r.ctx, upload, nil))
	r.must(m.CompleteLibraryItemUpdateSession(r.ctx, session))

	token := c.SessionID()
	if code, _, found := r.call(token, "POST", "/api/content/library?action=find", `{"name":"images"}`); code != 200 ||
		len(found) != 1 || found[0] != id {
		t.Errorf("find: %d %v", code, found)
	}
	if code, _, found := r.call(token, "POST", "/api/content/library/item?action=find", `{"name":"x"}`); code != 200 ||
		found == nil || len(found) != 0 {
		t.Errorf("find nothing: %d %v", code, found)
	}
	code, one, _ := r.call(token, "GET", "/api/content/library/item/"+item, "")
	if code != 200 || one["content_version"] != "2" || one["File"] != nil {
		t.Errorf("item: %d %v", code, one)
	}
	same, err := m.GetLibraryItem(r.ctx, item)
	r.must(err)
	if same.ContentVersion != "2" {
		t.Errorf("version below the older path: %s", same.ContentVersion)
	}
	if code, missing, _ := r.call(token, "GET", "/api/content/library/item/none", ""); code != 404 ||
		missing["error_type"] != "NOT_FOUND" {
		t.Errorf("no item: %d %v", code, missing)
	}
	asked, err := vcenter.NewManager(c).FilterLibraryItem(r.ctx, item, vcenter.FilterRequest{})
	r.must(err)
	_, other, _ := r.call(token, "POST", "/api/vcenter/ovf/library-item/"+item+"?action=filter", "{}")
	if len(asked.Networks) != 1 || asked.Networks[0] != "nat" || len(asked.EULAs) != 1 ||
		len(asked.AdditionalParams) != 1 || len(asked.AdditionalParams[0].Properties) != 1 ||
		other["name"] != "image" {
		t.Errorf("summary: %+v %v", asked, other)
	}
}
