package datacentre

import (
	"fmt"
	"slices"
)

// GPULoad is the load of a GPU; Utilisation is in percent, one number for each sample, repeated from the start.
type GPULoad struct {
	Utilisation []float64 `yaml:"utilisation" json:"utilisation"`
	MemoryMB    int64     `yaml:"memory_mb" json:"memory_mb"`
	Temperature int64     `yaml:"temperature" json:"temperature"`
	// Instance is the instance name of the counters, instead of the PCI address.
	Instance string `yaml:"instance" json:"instance,omitempty"`
}

// Check refuses a load without percentages.
func (l GPULoad) Check() error {
	outside := func(percent float64) bool { return percent < 0 || percent > 100 }
	if len(l.Utilisation) == 0 || slices.ContainsFunc(l.Utilisation, outside) {
		return fmt.Errorf("utilisation must be percentages, such as [80, 95], not %v", l.Utilisation)
	}
	return nil
}
