package world

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// image is a set of VIBs by name; images are replaced, never changed in place.
type image map[string]datacentre.VIB

// levels are the acceptance levels from strict to lax: as a VIB says them, as the API says them.
var levels = []struct{ vib, api string }{
	{"VMwareCertified", "vmware_certified"}, {"VMwareAccepted", "vmware_accepted"}, {"PartnerSupported", "partner"}, {"CommunitySupported", "community"},
}

// rank is a level's place, from strict to lax; -1 for none.
func rank(level string) int {
	for i, l := range levels {
		if l.vib == level || l.api == level {
			return i
		}
	}
	return -1
}

// isGPUDriver names the packages that are NVIDIA's host driver, under all names it has had.
var isGPUDriver = regexp.MustCompile(`^(NVIDIA-VMware|NVD-(AIE|VGPU|VMware))`)

// isGPUDaemon names the package of NVIDIA's monitoring daemon.
var isGPUDaemon = regexp.MustCompile(`(?i)nvd.?gpu.?mgmt.?daemon`)

// Software is the packages of a host: the image that runs and the one of the next boot.
type Software struct {
	host    *Host
	modules *Modules
	pci     *PCI

	mu         sync.Mutex // guards what follows; never held while a vcsim lock is taken
	image      image
	pending    image // of the next boot; nil when it is the running one
	acceptance string
}

// newSoftware installs the base packages, the drivers and the description's packages.
func newSoftware(ctx *simulator.Context, h *Host, cli *executer, modules *Modules, pci *PCI) *Software {
	s := &Software{host: h, modules: modules, pci: pci, image: image{}, acceptance: h.spec.AcceptanceLevel}
	for _, v := range append(s.baseVIBs(), h.spec.VIBs...) {
		v.AcceptanceLevel = orText(v.AcceptanceLevel, "VMwareAccepted")
		s.image[v.Name] = v
	}
	m := &imageConfigManager{software: s}
	m.Self = h.managerRef("HostImageConfigManager", "imageConfigManager")
	h.entity.ConfigManager.ImageConfigManager = h.manager(ctx, m)
	h.mayWait(s.waits)
	cli.add(s.vibCommands())
	cli.add(s.componentCommands())
	return s
}

// baseVIBs are on every host.
func (s *Software) baseVIBs() []datacentre.VIB {
	no := false
	desc := s.host.sim.desc
	build := desc.Version + "-0.0." + desc.Build
	list := []datacentre.VIB{
		{Name: "esx-base", Version: build, Vendor: "VMware", AcceptanceLevel: "VMwareCertified", Summary: "ESXi base system", Component: "ESXi", ComponentTitle: "ESXi"},
		{Name: "esx-ui", Version: "2.18.0-23593406", Vendor: "VMware", AcceptanceLevel: "VMwareCertified", Summary: "VMware Host Client", LiveInstall: true, MaintenanceRequired: &no},
	}
	for _, m := range s.modules.list() {
		list = append(list, datacentre.VIB{Name: strings.ReplaceAll(m.name, "_", "-"), Version: m.version + "-1vmw.803.0.0.24022510", Vendor: "VMW",
			AcceptanceLevel: "VMwareCertified", Summary: m.name + " driver"})
	}
	return list
}

// images are the running image and the one of the next boot; the latter is nil when none is pending.
func (s *Software) images() (running, pending image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.image, s.pending
}

// waits says whether packages wait for the next boot.
func (s *Software) waits() bool {
	_, pending := s.images()
	return pending != nil
}

// boot makes the pending image the running one.
func (s *Software) boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		s.image, s.pending = s.pending, nil
	}
}

// gpuDriver is the running package of NVIDIA's host driver.
func (s *Software) gpuDriver() (datacentre.VIB, bool) {
	running, _ := s.images()
	var driver datacentre.VIB
	found := false
	for _, v := range running.sorted() {
		if isGPUDriver.MatchString(v.Name) {
			driver, found = v, true
		}
	}
	return driver, found
}

// hasGPUDaemon says whether NVIDIA's monitoring daemon is installed and running.
func (s *Software) hasGPUDaemon() bool {
	running, _ := s.images()
	return running.has(isGPUDaemon)
}

// vendorComponents are the versions of the running components by name, without ESXi's own.
func (s *Software) vendorComponents() map[string]string {
	running, _ := s.images()
	components := map[string]string{}
	for _, v := range running {
		if v.Component != "" && v.Component != "ESXi" {
			components[v.Component] = v.Version
		}
	}
	return components
}

// has says whether the image holds a package whose name matches.
func (i image) has(name *regexp.Regexp) bool {
	for n := range i {
		if name.MatchString(n) {
			return true
		}
	}
	return false
}

// sorted are the packages by name.
func (i image) sorted() []datacentre.VIB {
	var out []datacentre.VIB
	for _, v := range i {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b datacentre.VIB) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// id is the package's id as esxcli prints it.
func id(v datacentre.VIB) string { return v.Vendor + "_bootbank_" + v.Name + "_" + v.Version }

func needsMaintenance(v datacentre.VIB) bool {
	return v.MaintenanceRequired == nil || *v.MaintenanceRequired
}

// named says whether a search such as name, name:version, vendor:name or vendor:name:version means the package.
func named(v datacentre.VIB, search string) bool {
	switch search {
	case v.Name, v.Name + ":" + v.Version, v.Vendor + ":" + v.Name, v.Vendor + ":" + v.Name + ":" + v.Version:
		return true
	}
	return false
}

var versionPart = regexp.MustCompile(`\d+|[^\d.\-]+`)

// newer compares versions part by part, numbers as numbers.
func newer(a, b string) bool {
	x, y := versionPart.FindAllString(a, -1), versionPart.FindAllString(b, -1)
	return slices.CompareFunc(x, y, func(p, q string) int {
		m, errM := strconv.Atoi(p)
		n, errN := strconv.Atoi(q)
		if errM == nil && errN == nil {
			return cmp.Compare(m, n)
		}
		return cmp.Compare(p, q)
	}) > 0
}

// depot is what the description puts under a path or URL.
func (s *Software) depot(path string) ([]datacentre.VIB, bool) {
	for _, d := range s.host.sim.desc.Depots {
		if slices.Contains(d.Paths, path) || slices.Contains(d.Paths, strings.TrimPrefix(path, "file://")) {
			var out []datacentre.VIB
			for _, v := range d.VIBs {
				v.AcceptanceLevel = orText(v.AcceptanceLevel, "VMwareAccepted")
				out = append(out, v)
			}
			return out, true
		}
	}
	return nil, false
}
