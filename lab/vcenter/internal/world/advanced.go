package world

import (
	"fmt"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/vim25/types"
)

// advancedRow is one advanced option as esxcli lists it.
func advancedRow(path string, d types.OptionDef, value *types.OptionValue) esxcli.Values {
	row := record("Path", path, "Description", d.Summary, "HostSpecific", "false", "Impact", "none")
	if limits, ok := d.OptionType.(*types.LongOption); ok {
		for name, n := range map[string]any{"DefaultIntValue": limits.DefaultValue, "IntValue": value.Value, "MinValue": limits.Min, "MaxValue": limits.Max} {
			row[name] = []string{fmt.Sprint(n)}
		}
		row["Type"] = []string{"integer"}
		return row
	}
	row["Type"], row["StringValue"], row["DefaultStringValue"] = []string{"string"}, []string{fmt.Sprint(value.Value)}, []string{""}
	return row
}
