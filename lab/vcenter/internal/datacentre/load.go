package datacentre

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed hardware.yml
var builtinHardware []byte

// Load reads a description from a file.
func Load(path string) (*Datacentre, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Parse reads a description, sets defaults and expands counts.
func Parse(text []byte) (*Datacentre, error) {
	d := &Datacentre{Version: "8.0.3", Build: "24022510", Name: "dc1", Datastores: []string{"shared"},
		StatisticsLevel: 1, EncryptedVMotion: true}
	if err := yaml.Unmarshal(builtinHardware, d); err != nil {
		return nil, fmt.Errorf("built-in hardware: %w", err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(d); err != nil {
		return nil, err
	}
	d.APIVersion = cmp.Or(d.APIVersion, d.Version+".0")
	if d.Release != "" {
		if err := d.Be(d.Release); err != nil {
			return nil, err
		}
	}
	for i := range d.Clusters {
		hosts, err := d.expand(d.Clusters[i].Hosts)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", d.Clusters[i].Name, err)
		}
		for h := range hosts {
			hosts[h].EVC = d.Clusters[i].EVC
		}
		d.Clusters[i].Hosts = hosts
	}
	d.VMs = expandVMs(d.VMs)
	return d, d.check()
}

func (d *Datacentre) expand(hosts []Host) ([]Host, error) {
	var out []Host
	number := 0
	for _, h := range hosts {
		if h.Count == 0 {
			number++
			out = append(out, h.numbered(h.Name, number, d.HostDefaults))
			continue
		}
		if !strings.Contains(h.Name, "%") {
			return nil, fmt.Errorf("hosts %q have a count, so their name needs a number such as esx%%02d.lab", h.Name)
		}
		first := max(h.First, 1)
		for i := range h.Count {
			number = first + i
			out = append(out, h.numbered(fmt.Sprintf(h.Name, number), number, d.HostDefaults))
		}
	}
	return out, nil
}

// numbered returns the host with defaults, and with its number in its addresses.
func (h Host) numbered(name string, number int, defaults Host) Host {
	h.Name, h.Count, h.First = name, 0, 0
	h.Hardware = cmp.Or(h.Hardware, cmp.Or(defaults.Hardware, "no_gpu"))
	h.AcceptanceLevel = cmp.Or(h.AcceptanceLevel, cmp.Or(defaults.AcceptanceLevel, "partner"))
	h.Graphics.Default = cmp.Or(h.Graphics.Default, cmp.Or(defaults.Graphics.Default, "shared"))
	h.Graphics.Policy = cmp.Or(h.Graphics.Policy, cmp.Or(defaults.Graphics.Policy, "performance"))
	h.ModuleOptions = union(defaults.ModuleOptions, h.ModuleOptions)
	h.Options = union(defaults.Options, h.Options)
	h.Rulesets = union(defaults.Rulesets, h.Rulesets)
	h.Uplinks = union(defaults.Uplinks, h.Uplinks)
	h.VIBs = append(append([]VIB(nil), defaults.VIBs...), h.VIBs...)
	if h.Passthrough == nil {
		h.Passthrough = defaults.Passthrough
	}
	if h.RDMAUsers == nil {
		h.RDMAUsers = defaults.RDMAUsers
	}
	if h.RebootSeconds == 0 {
		h.RebootSeconds = max(defaults.RebootSeconds, 0)
	}
	if h.VmotionSeconds == 0 {
		h.VmotionSeconds = defaults.VmotionSeconds
	}
	h.GPULoad = union(defaults.GPULoad, h.GPULoad)
	h.Vmkernel = adapters(defaults.Vmkernel, h.Vmkernel, number)
	return h
}

// adapters returns the vmkernel adapters by device: those of the host, or else the defaults.
func adapters(defaults, own []Vmkernel, number int) []Vmkernel {
	var out []Vmkernel
	place := map[string]int{}
	for _, v := range append(append([]Vmkernel(nil), defaults...), own...) {
		v.Address = strings.ReplaceAll(v.Address, "{n}", fmt.Sprint(number))
		v.Netmask = cmp.Or(v.Netmask, "255.255.0.0")
		if v.MTU == 0 {
			v.MTU = 1500
		}
		if i, seen := place[v.Device]; seen {
			out[i] = v
			continue
		}
		place[v.Device] = len(out)
		out = append(out, v)
	}
	return out
}

func expandVMs(vms []VM) []VM {
	var out []VM
	for _, v := range vms {
		if v.Count == 0 {
			out = append(out, v)
			continue
		}
		for i := range v.Count {
			one, n := v, max(v.First, 1)+i
			one.Count, one.First = 0, 0
			one.Name = fmt.Sprintf(v.Name, n)
			if strings.Contains(v.Host, "%") {
				one.Host = fmt.Sprintf(v.Host, n)
			}
			out = append(out, one)
		}
	}
	return out
}

func (d *Datacentre) check() error {
	for _, c := range d.Clusters {
		for _, h := range c.Hosts {
			hw, ok := d.Hardware[h.Hardware]
			if !ok {
				return fmt.Errorf("host %s: no hardware kind %q", h.Name, h.Hardware)
			}
			for _, g := range hw.GPUs {
				if _, ok := d.GPUModels[g.Model]; !ok {
					return fmt.Errorf("hardware %s: no GPU model %q", h.Hardware, g.Model)
				}
			}
			if err := h.checkLoad(hw); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
		}
	}
	return nil
}

func union[V any](under, over map[string]V) map[string]V {
	out := map[string]V{}
	for k, v := range under {
		out[k] = v
	}
	for k, v := range over {
		out[k] = v
	}
	return out
}

func (h Host) checkLoad(hw Hardware) error {
	for pci, load := range h.GPULoad {
		if !slices.ContainsFunc(hw.GPUs, func(g GPU) bool { return g.PCI == pci }) {
			return fmt.Errorf("gpu_load: no GPU at %q", pci)
		}
		if err := load.Check(); err != nil {
			return fmt.Errorf("gpu_load of %s: %w", pci, err)
		}
	}
	return nil
}
