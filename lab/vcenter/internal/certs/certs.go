// Package certs creates the TLS certificates of a simulated vCenter: a CA and a certificate for this machine.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dml.vsphere/lab/vcenter/internal/clock"
)

const validity = 10 * 365 * 24 * time.Hour

// Files are the paths of the files in a certificate directory.
type Files struct{ CA, Cert, Key string }

// In returns the paths of the files in a certificate directory.
func In(dir string) Files {
	return Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "vcenter.pem"),
		Key: filepath.Join(dir, "vcenter.key")}
}

// Ensure creates the certificates of dir unless all of them exist.
func Ensure(dir string) (Files, error) {
	files := In(dir)
	missing := false
	for _, name := range []string{files.CA, files.Cert, files.Key} {
		_, err := os.Stat(name)
		missing = missing || errors.Is(err, os.ErrNotExist)
	}
	if !missing {
		return files, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return files, err
	}
	return files, create(files)
}

func create(files Files) error {
	ca, caKey, caDER, err := authority()
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, serverTemplate(), ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(files.CA, 0o644, "CERTIFICATE", caDER),
		writePEM(files.Cert, 0o644, "CERTIFICATE", der, caDER),
		writePEM(files.Key, 0o600, "PRIVATE KEY", keyDER))
}

func authority() (*x509.Certificate, *ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	t := template("dml.vsphere lab CA")
	t.IsCA = true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, der, err
}

func serverTemplate() *x509.Certificate {
	t := template("vcenter.lab")
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames = []string{"localhost", "vcenter.lab"}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return t
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // the system's random source failed
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name, Organization: []string{"dml.vsphere lab"}},
		NotBefore:             clock.Machine.Now().Add(-time.Hour),
		NotAfter:              clock.Machine.Now().Add(validity),
		BasicConstraintsValid: true,
	}
}

func writePEM(path string, mode os.FileMode, kind string, blocks ...[]byte) error {
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})...)
	}
	return os.WriteFile(path, text, mode)
}

// Fingerprint returns the SHA-256 of the server certificate, as colon-separated hex.
func Fingerprint(pair tls.Certificate) string {
	sum := sha256.Sum256(pair.Certificate[0])
	var parts []string
	for _, b := range sum {
		parts = append(parts, fmt.Sprintf("%02X", b))
	}
	return strings.Join(parts, ":")
}
