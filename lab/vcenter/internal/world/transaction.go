package world

import (
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

// transaction is one change of a host's packages.
type transaction struct {
	install, remove, skip []datacentre.VIB
	dryRun, force         bool
	noLiveInstall         bool
	noSigCheck            bool
	pretendMaintenance    bool
}

// outcome is what esxcli says of a transaction.
type outcome struct {
	message        string
	rebootRequired bool
}

const (
	saidDone    = "Operation finished successfully."
	saidReboot  = "The update completed successfully, but the system needs to be rebooted for the changes to be effective."
	saidNothing = "Host is not changed."
	saidDryRun  = "Dryrun only, host not changed. The following installers will be applied: [BootBankInstaller]"
	seeLog      = "Please refer to the log file for more details."
)

func (t *transaction) empty() bool { return len(t.install)+len(t.remove) == 0 }

// live says whether the transaction takes effect without a reboot.
func (t *transaction) live() bool {
	return !t.noLiveInstall && !slices.ContainsFunc(append(slices.Clone(t.install), t.remove...), func(v datacentre.VIB) bool { return !v.LiveInstall })
}

// commit checks a transaction and carries it out, unless it is a dry run.
func (h *Host) commit(ctx *simulator.Context, t *transaction) (outcome, *cliError) {
	if t.empty() {
		return outcome{message: saidNothing}, nil
	}
	if err := h.refuseTransaction(ctx, t); err != nil {
		return outcome{}, err
	}
	live := t.live()
	if t.dryRun {
		return outcome{message: saidDryRun, rebootRequired: !live}, nil
	}
	h.mu.Lock()
	if live {
		h.image = t.applied(h.image)
	}
	if !live && h.pending == nil {
		h.pending = h.image
	}
	if h.pending != nil {
		h.pending = t.applied(h.pending)
	}
	h.mu.Unlock()
	h.showReboot(ctx)
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

func (h *Host) refuseTransaction(ctx *simulator.Context, t *transaction) *cliError {
	if err := h.refuseAcceptance(t); err != nil {
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
	if maintenance && !t.dryRun && !h.runtime(ctx).InMaintenanceMode && !(t.pretendMaintenance && t.live()) {
		return &cliError{lines: []string{"[MaintenanceModeError]",
			"MaintenanceMode is required to remove: [" + strings.Join(removes, ", ") + "]; install: [" + strings.Join(installs, ", ") + "].", seeLog}}
	}
	if slices.ContainsFunc(t.install, func(v datacentre.VIB) bool { return isGPUDriver.MatchString(v.Name) }) {
		if gpu := h.gpuInPassthrough(); gpu != "" {
			return &cliError{lines: []string{"[InstallationError]", "GPU " + gpu + " is in DirectPath I/O passthrough, the driver cannot be installed.", seeLog}}
		}
	}
	return nil
}

func (h *Host) refuseAcceptance(t *transaction) *cliError {
	if t.force || t.noSigCheck {
		return nil
	}
	h.mu.Lock()
	host := h.acceptance
	h.mu.Unlock()
	for _, v := range t.install {
		if rank(v.AcceptanceLevel) > rank(host) {
			return &cliError{lines: []string{"[AcceptanceConfigError]",
				"VIB " + id(v) + "'s acceptance level is " + levels[rank(v.AcceptanceLevel)].api + ", which is not compliant with the ImageProfile acceptance level " + levels[rank(host)].api + ".",
				"To change the host acceptance level, use the 'esxcli software acceptance set' command.", seeLog}}
		}
	}
	return nil
}

// owed says whether something waits for the next boot. The caller holds the host's lock.
func (h *Host) owed() bool {
	if h.pending != nil {
		return true
	}
	for _, p := range h.passthru {
		if p.enabled != p.active {
			return true
		}
	}
	return false
}

// showReboot shows whether the host owes a reboot.
func (h *Host) showReboot(ctx *simulator.Context) {
	h.mu.Lock()
	owed := h.owed()
	h.mu.Unlock()
	h.push(ctx, change("summary.rebootRequired", owed))
}
