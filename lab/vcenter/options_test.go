package main

import (
	"testing"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

func TestTheCommandLineSaysMoreThanTheDescription(t *testing.T) {
	for _, one := range []struct {
		given     options
		version   string
		encrypted bool
	}{
		{options{}, "8.0.3", true},
		{options{release: "8.0 U2", encryption: "off"}, "8.0.2", false},
		{options{release: "9.1", encryption: "on"}, "9.1.0", true},
	} {
		desc, err := datacentre.Load("datacentres/lab.yml")
		if err != nil {
			t.Fatal(err)
		}
		if err := one.given.change(desc); err != nil {
			t.Fatal(err)
		}
		if desc.Version != one.version || desc.EncryptedVMotion != one.encrypted {
			t.Errorf("%+v: version %s, encrypted %v", one.given, desc.Version, desc.EncryptedVMotion)
		}
	}
	for _, wrong := range []options{{encryption: "maybe"}, {release: "7.0 U3"}} {
		desc, err := datacentre.Load("datacentres/lab.yml")
		if err != nil {
			t.Fatal(err)
		}
		if wrong.change(desc) == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
