package datacentre

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// release contains the versions of vCenter and hosts in a release of vSphere.
type release struct{ version, api, build string }

// releases are the available releases of the data centre. The builds are those of the first ESXi of each release,
// from general knowledge; nothing depends on them.
var releases = map[string]release{
	"8.0 U2": {"8.0.2", "8.0.2.0", "22380479"},
	"8.0 U3": {"8.0.3", "8.0.3.0", "24022510"},
	"9.0":    {"9.0.0", "9.0.0.0", "24755229"},
	"9.1":    {"9.1.0", "9.1.0.0", "25370933"},
}

// Be sets the versions of the data centre to those of a release, instead of those in its description.
func (d *Datacentre) Be(name string) error {
	r, ok := releases[name]
	if !ok {
		return fmt.Errorf("no release %q: %s", name, strings.Join(slices.Sorted(maps.Keys(releases)), ", "))
	}
	d.Version, d.APIVersion, d.Build = r.version, r.api, r.build
	return nil
}
