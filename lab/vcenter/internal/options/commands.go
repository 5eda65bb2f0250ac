package options

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"dml.vsphere/lab/vcenter/internal/esxcli"
	"dml.vsphere/lab/vcenter/internal/host"
)

// advancedRow returns one advanced option in the format of esxcli.
func advancedRow(path string, d types.OptionDef, value *types.OptionValue) esxcli.Values {
	row := esxcli.Record("Path", path, "Description", d.Summary, "HostSpecific", "false", "Impact", "none")
	if limits, ok := d.OptionType.(*types.LongOption); ok {
		for name, n := range map[string]any{"DefaultIntValue": limits.DefaultValue, "IntValue": value.Value,
			"MinValue": limits.Min, "MaxValue": limits.Max} {
			row[name] = []string{fmt.Sprint(n)}
		}
		row["Type"] = []string{"integer"}
		return row
	}
	row["Type"], row["StringValue"], row["DefaultStringValue"] = []string{"string"}, []string{fmt.Sprint(value.Value)},
		[]string{""}
	return row
}

// advancedList answers esxcli system settings advanced list for a host.
type advancedList struct{ host *host.Host }

// run returns the advanced options with type, value, default and range.
// VMware: govmomi, simulator/esx/command_info.go (recorded from ESXi 8.0.1): system settings advanced list.
// Ours: all options that are long numbers or strings, although esxcli does not list some of them.
func (s advancedList) run(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	m := s.host.Sim.Registry.Get(*s.host.Entity.ConfigManager.AdvancedOption).(*simulator.OptionManager)
	out := esxcli.Rows("SettingsAdvancedOption")
	ctx.WithLock(m, func() {
		for i, d := range m.SupportedOption {
			path := "/" + strings.ReplaceAll(d.Key, ".", "/")
			if wanted := a.Value("option"); wanted != "" && wanted != path || !ofEsxcli(d) {
				continue
			}
			out.Values = append(out.Values, advancedRow(path, d, m.Setting[i].GetOptionValue()))
		}
	})
	if len(out.Values) == 0 {
		return nil, esxcli.Errorf("Unable to find option")
	}
	return out, nil
}

func ofEsxcli(d types.OptionDef) bool {
	switch d.OptionType.(type) {
	case *types.LongOption, *types.StringOption:
		return true
	}
	return false
}
