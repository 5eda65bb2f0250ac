package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// deadline is the maximum time that a test waits for an expected result.
const deadline = 20 * time.Second

const testUser, testPassword = "tester@vsphere.local", "secret"

// running is a data centre under test and one client of it.
type running struct {
	t *testing.T
	*lab
	ctx context.Context
	c   *govmomi.Client
}

// launch starts the data centre of a description; "" is the default lab with its RDMA network.
func launch(t *testing.T, description string) *running {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join("datacentres", "ready.yml")
	if description != "" {
		path = filepath.Join(dir, "datacentre.yml")
		if err := os.WriteFile(path, []byte(description), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := startLab(options{listen: "127.0.0.1:0", control: "127.0.0.1:0", datacentre: path, username: testUser,
		password: testPassword, certs: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	r := &running{t: t, lab: l, ctx: t.Context()}
	r.c = r.client()
	return r
}

// client logs in over TLS, and trusts only the lab's CA.
func (r *running) client() *govmomi.Client {
	r.t.Helper()
	sc := soap.NewClient(r.url(), false)
	r.must(sc.SetRootCAs(r.Ready.CAFile))
	vc, err := vim25.NewClient(r.ctx, sc)
	r.must(err)
	c := &govmomi.Client{Client: vc, SessionManager: session.NewManager(vc)}
	r.must(c.Login(r.ctx, r.url().User))
	return c
}

func (r *running) url() *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(r.Ready.Hostname, strconv.Itoa(r.Ready.Port)),
		Path: "/sdk",
		User: url.UserPassword(testUser, testPassword)}
}

func (r *running) host(name string) *object.HostSystem {
	r.t.Helper()
	h, err := find.NewFinder(r.c.Client).HostSystem(r.ctx, "/dc1/host/*/"+name)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *running) vm(name string) *object.VirtualMachine {
	r.t.Helper()
	vm, err := find.NewFinder(r.c.Client).VirtualMachine(r.ctx, "/dc1/vm/"+name)
	if err != nil {
		r.t.Fatal(err)
	}
	return vm
}

func (r *running) hostProperties(name string, paths ...string) mo.HostSystem {
	r.t.Helper()
	var h mo.HostSystem
	if err := r.c.RetrieveOne(r.ctx, r.host(name).Reference(), paths, &h); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// await waits until the PropertyCollector reports a value of a property.
func (r *running) await(obj types.ManagedObjectReference, path string, want types.AnyType) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, deadline)
	defer cancel()
	err := property.Wait(ctx, property.DefaultCollector(r.c.Client), obj, []string{path},
		func(changes []types.PropertyChange) bool {
			for _, c := range changes {
				if c.Name == path && c.Val == want {
					return true
				}
			}
			return false
		})
	if err != nil {
		r.t.Fatalf("%s of %s never became %v: %v", path, obj, want, err)
	}
}

// control calls the control interface and decodes the answer into out, unless out is nil.
func (r *running) control(method, path string, body, out any) {
	r.t.Helper()
	status, text := r.controlRaw(method, path, body)
	if status >= http.StatusBadRequest {
		r.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			r.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

func (r *running) controlRaw(method, path string, body any) (int, []byte) {
	r.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.ctx, method, r.Ready.Control+path, bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// letPass lets time pass at once in the data centre.
func (r *running) letPass(d time.Duration) {
	r.t.Helper()
	r.control("POST", "/clock", map[string]any{"seconds": d.Seconds()}, nil)
}

// must fails the test on an error.
func (r *running) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// finish waits for a task that must succeed.
func (r *running) finish(task *object.Task, err error) {
	r.t.Helper()
	r.must(err)
	r.must(task.Wait(r.ctx))
}

// faultOf returns the vSphere fault of an error, or nil without one.
func faultOf(err error) any {
	if err == nil {
		return nil
	}
	if soap.IsSoapFault(err) {
		return soap.ToSoapFault(err).VimFault()
	}
	type faulty interface{ Fault() types.BaseMethodFault }
	if f, ok := err.(faulty); ok {
		return f.Fault()
	}
	return err
}

// labDescription returns the description of the default lab, for tests that change a line of it.
func labDescription(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("datacentres", "ready.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// awaitTrue waits until a condition is true.
func (r *running) awaitTrue(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(deadline); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("it never came that %s", what)
		}
	}
}
