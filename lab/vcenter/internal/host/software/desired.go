package software

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// baseVIB is the package that has the version of the base image.
const baseVIB = "esx-base"

// Desired is what an image of vLCM wants on a host: the vendor components by name, and the version of ESXi.
type Desired struct {
	Components map[string]string
	BaseImage  string
}

// Follows reports whether the host runs exactly the vendor components and the base image.
func (s *System) Follows(d Desired) bool {
	return maps.Equal(s.VendorComponents(), d.Components) && s.BaseImage() == cmp.Or(d.BaseImage, s.BaseImage())
}

// BaseImage returns the version of the running ESXi.
func (s *System) BaseImage() string {
	running, _ := s.images()
	return running[baseVIB].Version
}

// Install brings the packages of the next boot to an image, and reports whether they need a reboot; the second value
// is the reason of a refusal.
// VMware: vSphere Automation SDK, Software.apply; packages that are not part of the image are removed.
// Ours: the packages of the description's depots are at hand.
func (s *System) Install(ctx *simulator.Context, d Desired) (bool, string) {
	t := &transaction{}
	for _, v := range s.base().sorted() {
		if v.Component != "" && v.Component != "ESXi" && d.Components[v.Component] != v.Version {
			t.remove = append(t.remove, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components)) {
		if s.VendorComponents()[name] != d.Components[name] {
			t.install = append(t.install, s.ofComponent(name, d.Components[name])...)
		}
	}
	if d.BaseImage != "" && d.BaseImage != s.base()[baseVIB].Version {
		base := s.base()[baseVIB]
		base.Version = d.BaseImage
		t.install = append(t.install, base)
	}
	done, err := s.commit(ctx, t)
	if err != nil {
		return false, strings.Join(err.Lines, " ")
	}
	return done.rebootRequired, ""
}

// ofComponent returns the packages of a version of a component in the description's depots.
func (s *System) ofComponent(name, version string) []datacentre.VIB {
	for _, d := range s.host.Sim.Description.Depots {
		var found []datacentre.VIB
		for _, v := range d.VIBs {
			if v.Component == name && v.Version == version {
				v.AcceptanceLevel = cmp.Or(v.AcceptanceLevel, "VMwareAccepted")
				found = append(found, v)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
