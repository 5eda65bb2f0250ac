package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/certs"
	"dml.vsphere/lab/vcenter/internal/control"
	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/front"
	"dml.vsphere/lab/vcenter/internal/vcenter"
)

// options are the options of the command line.
type options struct {
	listen, control, datacentre string
	release, encryption         string
	username, password          string
	certs, cert, key, ca        string
	delay                       time.Duration
	hostsOut                    int
	ready                       string
}

// lab is a running data centre.
type lab struct {
	vcenter *vcenter.Server
	stock   *simulator.Server // of vcsim, for endpoints that are clients of the API
	front   *front.Front
	api     *http.Server
	steer   *http.Server
	Ready   readiness
	stopped chan error

	mu         sync.Mutex // guards api
	restarting atomic.Bool
}

// readiness is the content of the ready file.
type readiness struct {
	Hostname    string `json:"hostname"`
	Port        int    `json:"port"`
	Control     string `json:"control"`
	Fingerprint string `json:"fingerprint"`
	CAFile      string `json:"ca_file"`
	PID         int    `json:"pid"`
}

// startLab builds the data centre and serves it.
func startLab(o options) (*lab, error) {
	pair, caFile, err := certificate(o)
	if err != nil {
		return nil, err
	}
	desc, err := datacentre.Load(o.datacentre)
	if err != nil {
		return nil, err
	}
	if err := o.change(desc); err != nil {
		return nil, err
	}
	w, err := vcenter.New(desc)
	if err != nil {
		return nil, err
	}
	l := &lab{vcenter: w, stopped: make(chan error, 2)}
	if err := l.serve(o, pair); err != nil {
		l.stop()
		return nil, err
	}
	l.Ready.CAFile, l.Ready.Fingerprint, l.Ready.PID = caFile, certs.Fingerprint(pair), os.Getpid()
	return l, nil
}

// change replaces values of the description with those of the command line.
func (o options) change(desc *datacentre.Datacentre) error {
	if o.release != "" {
		if err := desc.Be(o.release); err != nil {
			return err
		}
	}
	if o.hostsOut > 0 {
		desc.HostsOut = o.hostsOut
	}
	switch o.encryption {
	case "":
	case "on", "off":
		desc.EncryptedVMotion = o.encryption == "on"
	default:
		return fmt.Errorf("encryption must be on or off, not %q", o.encryption)
	}
	return nil
}

func certificate(o options) (tls.Certificate, string, error) {
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		ca := o.ca
		if ca == "" {
			ca = o.cert
		}
		return pair, ca, err
	}
	files, err := certs.Ensure(o.certs)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	return pair, files.CA, err
}

func (l *lab) serve(o options, pair tls.Certificate) error {
	apiSocket, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	controlSocket, err := listenLoopback(o.control)
	if err != nil {
		return errors.Join(err, apiSocket.Close())
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return errors.Join(err, apiSocket.Close(), controlSocket.Close())
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}
	// vcsim signs with this certificate, and shows it as the certificate of the server.
	l.vcenter.Service().Context.Map.SessionManager().TLS = func() *tls.Config { return config }
	endpoints, stock := handler(l.vcenter.Service(), apiSocket.Addr().String(), o)
	l.stock = stock
	gate := front.New(l.vcenter, endpoints, o.delay)
	gate.Policies = func() ([]front.Policy, error) { return storagePolicies(stock) }
	l.front = gate
	l.api = &http.Server{Handler: gate, TLSConfig: config, ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: log.New(quiet{}, "", 0)}
	l.steer = &http.Server{Handler: control.New(gate, l.vcenter, l.restart), ReadHeaderTimeout: 30 * time.Second}
	go l.serveAPI(l.api, apiSocket)
	go func() { l.stopped <- l.steer.Serve(controlSocket) }()
	address := apiSocket.Addr().(*net.TCPAddr)
	l.Ready.Hostname, l.Ready.Port = "127.0.0.1", address.Port
	if !address.IP.IsUnspecified() {
		l.Ready.Hostname = address.IP.String()
	}
	l.Ready.Control = "http://" + controlSocket.Addr().String()
	return nil
}

func (l *lab) serveAPI(server *http.Server, socket net.Listener) {
	if err := server.ServeTLS(socket, "", ""); !l.restarting.Load() {
		l.stopped <- err
	}
}

// restart ends the service of vCenter and starts it again after some time: connections are refused in between, then
// sessions and tasks are gone.
// VMware: vSphere Web Services SDK Programming Guide, "Session Management": a session ends with the server. The
// inventory and the events are in the database of vCenter.
func (l *lab) restart(pause time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.api
	l.restarting.Store(true)
	if err := old.Close(); err != nil {
		return err
	}
	l.front.EndSessions()
	l.vcenter.ForgetTasks()
	l.vcenter.Clock().Sleep(pause)
	socket, err := net.Listen("tcp", net.JoinHostPort(l.Ready.Hostname, strconv.Itoa(l.Ready.Port)))
	if err != nil {
		return err
	}
	l.api = &http.Server{Handler: old.Handler, TLSConfig: old.TLSConfig, ReadHeaderTimeout: old.ReadHeaderTimeout,
		ErrorLog: old.ErrorLog}
	l.restarting.Store(false)
	go l.serveAPI(l.api, socket)
	return nil
}

func listenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the control interface listens only on loopback, not on %s", host)
	}
	return net.Listen("tcp", address)
}

// writeReady writes the ready file with a rename, so that no reader sees an incomplete file.
func (l *lab) writeReady(path string) error {
	text, err := json.MarshalIndent(l.Ready, "", "  ")
	if err != nil {
		return err
	}
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	if err := os.WriteFile(draft, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(draft, path)
}

func (l *lab) stop() {
	for _, s := range []*http.Server{l.api, l.steer} {
		if s == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		if s.Shutdown(ctx) != nil {
			_ = s.Close() // ends waiting calls
		}
		cancel()
	}
	if l.stock != nil {
		l.stock.CloseClientConnections()
		l.stock.Close()
	}
	l.vcenter.Close()
}

// quiet drops the server's log of failed TLS handshakes, because tests refuse the certificate on purpose.
type quiet struct{}

// Write drops the line.
func (quiet) Write(p []byte) (int, error) { return len(p), nil }
