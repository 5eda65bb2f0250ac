package options

import (
	_ "embed"
	"math"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

//go:embed esxi.txt
var listed string

// hostOptions are the advanced options of an ESXi host with types and ranges, and hostValues their initial values.
// VMware: github.com/lamw/esxi-advanced-and-kernel-settings, a list of the options of an ESXi 8.0 U3 host.
// Ours: hosts of every release have the same options; numbers without a range in the list have type int; other keys
// are InvalidName.
var hostOptions, hostValues = read(listed)

// read reads definitions and values, one of each per line.
func read(list string) ([]types.OptionDef, []types.BaseOptionValue) {
	var defs []types.OptionDef
	var values []types.BaseOptionValue
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		before, now, changed := strings.Cut(strings.TrimSpace(line), " now ")
		key, rest, _ := strings.Cut(before, " ")
		name, given, _ := strings.Cut(rest, " ")
		d := definition(key, kind(name, given))
		value := initial(d.OptionType)
		if changed {
			words := append([]string{now}, strings.Fields(given)[1:]...)
			value = initial(kind(name, strings.Join(words, " ")))
		}
		defs, values = append(defs, d), append(values, &types.OptionValue{Key: key, Value: value})
	}
	return defs, values
}

// kind returns the type of an option with its default value, and panics for an invalid line.
func kind(name, given string) types.BaseOptionType {
	switch name {
	case "text":
		value, err := strconv.Unquote(given)
		if err != nil {
			panic(err)
		}
		return &types.StringOption{DefaultValue: value, OptionType: settable()}
	case "flag":
		return &types.BoolOption{Supported: true, DefaultValue: given == "true", OptionType: settable()}
	case "int":
		return &types.IntOption{Min: math.MinInt32, Max: math.MaxInt32, DefaultValue: int32(numbers(given)[0]),
			OptionType: settable()}
	}
	n := numbers(given)
	return &types.LongOption{DefaultValue: n[0], Min: n[1], Max: n[2], OptionType: settable()}
}

func numbers(given string) []int64 {
	var out []int64
	for word := range strings.FieldsSeq(given) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}
