package software

import (
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
)

// transaction is one change of a host's packages.
type transaction struct {
	install, remove, skip []datacentre.VIB
	dryRun, force         bool
	noLiveInstall         bool
	noSigCheck            bool
	pretendMaintenance    bool
}

// outcome is the result of a transaction as esxcli prints it.
type outcome struct {
	message        string
	rebootRequired bool
}

const (
	saidDone   = "Operation finished successfully."
	saidReboot = "The update completed successfully, but the system needs to be rebooted for the changes to be " +
		"effective."
	saidNothing = "Host is not changed."
	saidDryRun  = "Dryrun only, host not changed. The following installers will be applied: [BootBankInstaller]"
	seeLog      = "Please refer to the log file for more details."
)

func (t *transaction) empty() bool { return len(t.install)+len(t.remove) == 0 }

// live reports whether the transaction takes effect without a reboot.
func (t *transaction) live() bool {
	return !t.noLiveInstall && !slices.ContainsFunc(append(slices.Clone(t.install), t.remove...),
		func(v datacentre.VIB) bool { return !v.LiveInstall })
}

// commit checks a transaction and applies it, unless it is a dry run. Packages without live install take effect at
// the next boot.
// VMware: VMware documentation, esxcli software vib: messages, dry run, RebootRequired. Real installs of NVIDIA's
// driver return RebootRequired false but need a reboot.
func (s *System) commit(ctx *simulator.Context, t *transaction) (outcome, *esxcli.Error) {
	if t.empty() {
		return outcome{message: saidNothing}, nil
	}
	if err := s.refuseTransaction(ctx, t); err != nil {
		return outcome{}, err
	}
	live := t.live()
	if t.dryRun {
		return outcome{message: saidDryRun, rebootRequired: !live}, nil
	}
	s.mu.Lock()
	if live {
		s.image = t.applied(s.image)
	}
	if !live && s.pending == nil {
		s.pending = s.image
	}
	if s.pending != nil {
		s.pending = t.applied(s.pending)
	}
	s.mu.Unlock()
	s.host.ShowReboot(ctx)
	if live {
		return outcome{message: saidDone}, nil
	}
	return outcome{message: saidReboot, rebootRequired: true}, nil
}

func (t *transaction) applied(old image) image {
	out := maps.Clone(old)
	for _, v := range t.remove {
		delete(out, v.Name)
	}
	for _, v := range t.install {
		out[v.Name] = v
	}
	return out
}

// refuseTransaction refuses packages that need maintenance mode if the host is not in it, and the GPU driver while a
// GPU is in DirectPath.
// VMware: F. Denneman's posts on vSphere 8 and GPUs (2023): no GPU may be in DirectPath during the installation of
// the driver; help of esxcli software vib install: --maintenance-mode has no effect when a reboot is needed.
// Ours: the texts of the refusals (unproven).
func (s *System) refuseTransaction(ctx *simulator.Context, t *transaction) *esxcli.Error {
	if err := s.refuseAcceptance(t); err != nil {
		return err
	}
	var installs, removes []string
	maintenance := false
	for _, v := range t.install {
		installs = append(installs, id(v))
		maintenance = maintenance || needsMaintenance(v)
	}
	for _, v := range t.remove {
		removes = append(removes, id(v))
		maintenance = maintenance || needsMaintenance(v)
	}
	if maintenance && !t.dryRun && !s.host.Runtime(ctx).InMaintenanceMode && !(t.pretendMaintenance && t.live()) {
		return &esxcli.Error{Lines: []string{"[MaintenanceModeError]",
			"MaintenanceMode is required to remove: [" + strings.Join(removes, ", ") + "]; install: [" + strings.Join(
				installs, ", ") + "].", seeLog}}
	}
	if slices.ContainsFunc(t.install, func(v datacentre.VIB) bool { return isGPUDriver.MatchString(v.Name) }) {
		if gpu := s.pci.GPUInPassthrough(); gpu != "" {
			return &esxcli.Error{Lines: []string{"[InstallationError]",
				"GPU " + gpu + " is in DirectPath I/O passthrough, the driver cannot be installed.", seeLog}}
		}
	}
	return nil
}

// refuseAcceptance refuses packages below the acceptance level of the host, unless forced or without signature check.
// VMware: VMware documentation, acceptance levels of hosts and VIBs.
func (s *System) refuseAcceptance(t *transaction) *esxcli.Error {
	if t.force || t.noSigCheck {
		return nil
	}
	s.mu.Lock()
	host := s.acceptance
	s.mu.Unlock()
	for _, v := range t.install {
		if rank(v.AcceptanceLevel) > rank(host) {
			is, wants := levels[rank(v.AcceptanceLevel)].api, levels[rank(host)].api
			return &esxcli.Error{Lines: []string{"[AcceptanceConfigError]",
				"VIB " + id(v) + "'s acceptance level is " + is +
					", which is not compliant with the ImageProfile acceptance level " + wants + ".",
				"To change the host acceptance level, use the 'esxcli software acceptance set' command.", seeLog}}
		}
	}
	return nil
}
