package front

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/ovf"
	"github.com/vmware/govmomi/vapi/vcenter"
)

const (
	newItems, oldItems         = "/api/content/library/item", "/rest/com/vmware/content/library/item"
	newTemplates, oldTemplates = "/api/vcenter/vm-template/library-items", "/rest/vcenter/vm-template/library-items"
	newOVF, oldOVF             = "/api/vcenter/ovf/library-item", "/rest/com/vmware/vcenter/ovf/library-item"
)

// libraryPaths are the paths of content libraries with the older ones, which vcsim has; the longer ones are first.
// VMware: its description of the REST API, 8.0.2: /api/content/library and /rest/com/vmware/content/library.
var libraryPaths = []struct{ newer, older string }{
	{newItems, oldItems},
	{"/api/content/library/subscribed-item", "/rest/com/vmware/content/library/subscribed-item"},
	{"/api/content/subscribed-library", "/rest/com/vmware/content/subscribed-library"},
	{"/api/content/library", "/rest/com/vmware/content/library"},
	{newTemplates, oldTemplates},
	{newOVF, oldOVF},
}

// olderLibrary returns the request for the older path of content libraries, and its body. vcsim itself answers the
// deeper paths, such as usages.
func olderLibrary(r *http.Request, body []byte) (*http.Request, []byte, bool) {
	for _, p := range libraryPaths {
		rest, is := strings.CutPrefix(r.URL.Path, p.newer)
		id := strings.Trim(rest, "/")
		if !is || strings.Contains(id, "/") || id != "" && !strings.HasPrefix(rest, "/") {
			continue
		}
		old := r.Clone(r.Context())
		action, query := r.URL.Query().Get("action"), r.URL.Query()
		old.URL.Path, old.URL.RawPath = p.older, ""
		if id != "" && p.newer == newTemplates {
			old.URL.Path += "/" + id
		} else if id != "" {
			old.URL.Path += "/id:" + id
		}
		if action != "" && p.newer != newTemplates {
			query.Del("action")
			query.Set("~action", action)
		}
		old.URL.RawQuery = query.Encode()
		old.RequestURI = old.URL.RequestURI()
		return old, olderBody(p.newer, action, body), true
	}
	return nil, nil, false
}

// olderBody returns the body for an older path: a search and a template have a wrapper, and a map is a list of pairs.
func olderBody(path, action string, body []byte) []byte {
	if action == "find" || path == newTemplates && len(body) > 0 {
		return encoded(map[string]json.RawMessage{"spec": body})
	}
	var asked map[string]any
	if action != "deploy" || json.Unmarshal(body, &asked) != nil {
		return body
	}
	if spec, ok := asked["deployment_spec"].(map[string]any); ok {
		if networks, ok := spec["network_mappings"].(map[string]any); ok {
			pairs := []map[string]any{}
			for key, value := range networks {
				pairs = append(pairs, map[string]any{"key": key, "value": value})
			}
			spec["network_mappings"] = pairs
		}
	}
	return encoded(asked)
}

// apiLibrary answers a request below /api for content libraries with the older path: answers are not wrapped.
func (f *Front) apiLibrary(old *http.Request, body []byte) *recorder {
	rec := f.library(old, body)
	rec.header.Del("Content-Length")
	var wrapped struct{ Value json.RawMessage }
	if rec.result() == "ok" && json.Unmarshal(rec.body.Bytes(), &wrapped) == nil {
		rec.body = *bytes.NewBuffer(withoutState(wrapped.Value))
		isList := old.Method == http.MethodGet || old.URL.Query().Get("~action") == "find"
		if isList && string(wrapped.Value) == "null" {
			rec.body = *bytes.NewBufferString("[]")
		}
	}
	if rec.status == http.StatusNotFound {
		rec.header.Set("Content-Type", "application/json")
		rec.body = *bytes.NewBuffer(encoded(map[string]any{"error_type": "NOT_FOUND", "messages": []map[string]any{
			{"id": "lab.library", "default_message": "The object was not found.", "args": []string{}}}}))
	}
	if strings.HasSuffix(old.URL.RawQuery, "action=sync") && rec.status == http.StatusOK {
		rec.status = http.StatusNoContent
		rec.body.Reset()
	}
	return rec
}

// withoutState returns an answer without the state of vcsim that it has too, and with maps, which the older path has
// as lists.
func withoutState(value json.RawMessage) []byte {
	var answer map[string]any
	if json.Unmarshal(value, &answer) != nil || answer == nil {
		return value
	}
	for _, key := range []string{"Item", "Subs", "VMTX", "File", "Template", "state_info"} {
		delete(answer, key)
	}
	if answer["vm_template"] != nil {
		answer["disks"], answer["nics"] = map[string]any{}, map[string]any{}
	}
	return encoded(answer)
}

// library forwards a request for content libraries to vcsim, and completes its answer.
func (f *Front) library(old *http.Request, body []byte) *recorder {
	f.restTurn.Lock()
	defer f.restTurn.Unlock()
	rec := f.forward(old, body)
	if rec.result() != "ok" {
		return rec
	}
	item := strings.TrimPrefix(path.Base(old.URL.Path), "id:")
	switch action := old.URL.Query().Get("~action"); {
	case old.Method == http.MethodPost && old.URL.Path == oldItems+"/update-session":
		f.learnUpdate(body, rec)
	case action == "complete" && path.Dir(old.URL.Path) == oldItems+"/update-session":
		f.versions[f.updates[item]]++
	case old.Method == http.MethodPost && old.URL.Path == oldTemplates:
		f.learnTemplate(body, rec)
	case old.Method == http.MethodGet && path.Dir(old.URL.Path) == oldTemplates:
		answerWith(rec, f.templateInfo(item))
	case old.Method == http.MethodGet && path.Dir(old.URL.Path) == oldItems:
		f.showVersions(rec)
	case action == "filter" && path.Dir(old.URL.Path) == oldOVF:
		if summary := f.summary(old, item); summary != nil {
			answerWith(rec, summary)
		}
	}
	return rec
}

// learnTemplate keeps the virtual machine of a new item, which vcsim does not show.
func (f *Front) learnTemplate(body []byte, rec *recorder) {
	var asked struct{ Spec struct{ Name string } }
	var made struct{ Value string }
	if json.Unmarshal(body, &asked) == nil && json.Unmarshal(rec.body.Bytes(), &made) == nil {
		f.templates[made.Value] = asked.Spec.Name
	}
}

// templateInfo returns the description of a template in a library.
// VMware: its description of the REST API, 7.0.3, VcenterVmTemplateLibraryItemsInfo: vm_template is the object.
func (f *Front) templateInfo(item string) any {
	size, cores, id := f.dataCentre.MachineSize(f.templates[item])
	return map[string]any{"guest_OS": "OTHER_LINUX_64", "vm_template": id, "disks": []any{}, "nics": []any{},
		"cpu": map[string]any{"count": cores, "cores_per_socket": 1}, "memory": map[string]any{"size_MiB": size},
		"vm_home_storage": map[string]any{"datastore": ""}}
}

// learnUpdate keeps the item of a new update session.
func (f *Front) learnUpdate(body []byte, rec *recorder) {
	var asked struct {
		Spec struct {
			Item string `json:"library_item_id"`
		} `json:"create_spec"`
	}
	var made struct{ Value string }
	if json.Unmarshal(body, &asked) == nil && json.Unmarshal(rec.body.Bytes(), &made) == nil {
		f.updates[made.Value] = asked.Spec.Item
	}
}

// showVersions sets the versions of an item, which vcsim never changes: each update of the files makes a new one. An
// item of a subscribed library has those of its source.
// VMware: its description of the REST API, 8.0.2, ContentLibraryItemModel: content_version is that of the files.
func (f *Front) showVersions(rec *recorder) {
	var wrapped struct{ Value map[string]any }
	if json.Unmarshal(rec.body.Bytes(), &wrapped) != nil || wrapped.Value == nil {
		return
	}
	source, _ := wrapped.Value["source_id"].(string)
	if source == "" {
		source, _ = wrapped.Value["id"].(string)
	}
	if wrapped.Value["cached"] == nil {
		wrapped.Value["cached"] = false
	}
	wrapped.Value["version"], wrapped.Value["metadata_version"] = "1", "1"
	wrapped.Value["content_version"] = strconv.Itoa(1 + f.versions[source])
	answerWith(rec, wrapped.Value)
}

// summary returns what the OVF descriptor of an item asks for; nil if the item has no descriptor that can be read.
// VMware: its description of the REST API, 7.0.3, VcenterOvfLibraryItemOvfSummary.
func (f *Front) summary(old *http.Request, item string) any {
	ask := old.Clone(old.Context())
	ask.Method, ask.Body = http.MethodGet, nil
	ask.URL.Path, ask.URL.RawQuery = oldItems+"/storage", url.Values{"library_item_id": {item}}.Encode()
	ask.RequestURI = ask.URL.RequestURI()
	var stored struct {
		Value []struct {
			Name string
			URIs []string `json:"storage_uris"`
		}
	}
	if json.Unmarshal(f.forward(ask, nil).body.Bytes(), &stored) != nil {
		return nil
	}
	for _, file := range stored.Value {
		if strings.HasSuffix(file.Name, ".ovf") && len(file.URIs) > 0 {
			if text, err := os.ReadFile(file.URIs[0]); err == nil {
				return summaryOf(text)
			}
		}
	}
	return nil
}

func summaryOf(descriptor []byte) any {
	envelope, err := ovf.Unmarshal(bytes.NewReader(descriptor))
	if err != nil || envelope.VirtualSystem == nil {
		return nil
	}
	licences, networks, properties := []string{}, []string{}, []vcenter.Property{}
	for _, one := range envelope.VirtualSystem.Eula {
		licences = append(licences, one.License)
	}
	if envelope.Network != nil {
		for _, one := range envelope.Network.Networks {
			networks = append(networks, one.Name)
		}
	}
	for _, product := range envelope.VirtualSystem.Product {
		for _, one := range product.Property {
			if one.UserConfigurable != nil && *one.UserConfigurable {
				properties = append(properties, vcenter.Property{ID: one.Key, Type: one.Type,
					Value: given(one.Default), Label: given(one.Label), ClassID: given(product.Class),
					InstanceID: given(product.Instance)})
			}
		}
	}
	return map[string]any{"name": given(envelope.VirtualSystem.Name), "EULAs": licences, "networks": networks,
		"additional_params": []any{map[string]any{"@class": vcenter.ClassPropertyParams,
			"type": vcenter.TypePropertyParams, "properties": properties}}}
}

func given(one *string) string {
	if one == nil {
		return ""
	}
	return *one
}

// answerWith replaces the value of a wrapped answer.
func answerWith(rec *recorder, value any) {
	rec.body = *bytes.NewBuffer(encoded(map[string]any{"value": value}))
	rec.header.Del("Content-Length")
}

func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // encoding decoded JSON cannot fail
	}
	return text
}
