package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator/esx"
)

// dumped returns the fields of a command's answers on ESXi 8.0.1 from the dump in govmomi, or none if the dump does
// not contain the command.
func dumped(command string) []string {
	var out []string
	for _, kind := range esx.TypeInfo.DataTypeInfo {
		within, found := strings.CutPrefix(kind.Name, "vim.EsxCLI."+strings.ReplaceAll(command, " ", ".")+".")
		if !found || strings.Contains(within, ".") {
			continue
		}
		for _, field := range kind.Property {
			out = append(out, field.Name)
		}
	}
	return out
}

// parameters returns the parameters of a command in the dump.
func parameters(command string) []string {
	words := strings.Fields(command)
	name := "vim.EsxCLI." + strings.Join(words[:len(words)-1], ".")
	var out []string
	for _, kind := range esx.TypeInfo.ManagedTypeInfo {
		for _, method := range kind.Method {
			if kind.Name != name || method.Name != words[len(words)-1] {
				continue
			}
			for _, parameter := range method.ParamTypeInfo {
				out = append(out, parameter.Name)
			}
		}
	}
	return out
}

func TestAnswersHaveTheFieldsOfARealHost(t *testing.T) {
	r := launch(t, "")
	zip := "/vmfs/volumes/shared/nvd-gpu-mgmt-daemon_550.90.05-0.0.0000_24012345.zip"
	for command, args := range map[string][]string{
		"software vib list":    {"rebootingimage", "false"},
		"software vib get":     {"vibname", "nmlx5-core"},
		"software vib install": {"depot", zip, "dryrun", "true", "maintenancemode", "true"},
	} {
		fields, known := dumped(command), parameters(command)
		if len(fields) == 0 || len(known) == 0 {
			t.Fatalf("the dump lacks %s", command)
		}
		rows, fault := r.esxcli("esx01.lab", command, args...)
		if fault != "" || len(rows) == 0 {
			t.Fatalf("%s: %v %s", command, rows, fault)
		}
		for field := range rows[0] {
			if !slices.Contains(fields, field) {
				t.Errorf("%s: a real host has no field %s", command, field)
			}
		}
		for i := 0; i < len(args); i += 2 {
			if !slices.Contains(known, args[i]) {
				t.Errorf("%s: a real host has no parameter %s", command, args[i])
			}
		}
	}
}
