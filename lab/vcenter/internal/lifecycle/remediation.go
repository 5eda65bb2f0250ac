package lifecycle

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/host/software"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// operationSpec is the body of apply, stage and check.
type operationSpec struct {
	Commit     string   `json:"commit"`
	Hosts      []string `json:"hosts"`
	AcceptEULA bool     `json:"accept_eula"`
}

// operation is one call of apply, stage, check or scan that passed its checks.
type operation struct {
	action  string
	user    string
	cluster vcsim.Ref
	hosts   []*esxi.Host
	spec    operationSpec
}

// softwareAction answers apply, stage, check and scan, which are tasks; a cluster has one apply or stage at a time.
// VMware: vSphere Automation SDK, com.vmware.esx.settings.clusters.Software: ApplySpec, StageSpec, CheckSpec with
// hosts and commit; scan has no body; InvalidArgument, NotAllowedInCurrentState, AlreadyInDesiredState.
func (s *Service) softwareAction(out http.ResponseWriter, r *http.Request, of vcsim.Ref) {
	user, _, _ := r.BasicAuth()
	op := operation{action: r.URL.Query().Get("action"), user: user, cluster: of}
	work := map[string]func(operation){"apply": s.apply, "stage": s.stage, "check": s.check, "scan": s.scan}[op.action]
	if work == nil {
		restError(out, http.StatusBadRequest, "UNSUPPORTED", "The action '"+op.action+"' is not simulated.")
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&op.spec); err != nil && !errors.Is(err, io.EOF) {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	if kind, text := s.refusal(&op); kind != "" {
		restError(out, http.StatusBadRequest, kind, text)
		return
	}
	task := s.begin(op.user, op.action+"$task", of)
	s.start(task, op, work)
	restStarted(out, task)
}

// refusal returns the kind and the text of an error before the task starts; it fills the hosts of the operation.
func (s *Service) refusal(op *operation) (kind, text string) {
	all := s.members(op.cluster)
	for _, h := range all {
		if len(op.spec.Hosts) == 0 || slices.Contains(op.spec.Hosts, h.Self.Value) {
			op.hosts = append(op.hosts, h)
		}
	}
	if len(op.spec.Hosts) > 0 && len(op.hosts) != len(op.spec.Hosts) {
		return "INVALID_ARGUMENT", "A host of the specification is not part of the cluster."
	}
	if op.action == "scan" {
		return "", ""
	}
	s.mu.Lock()
	busy := s.busy[op.cluster]
	s.mu.Unlock()
	if busy != "" {
		return "NOT_ALLOWED_IN_CURRENT_STATE", "Another operation is in progress on the cluster: " + busy + "."
	}
	d := s.desired(op.cluster)
	if op.action == "apply" && !slices.ContainsFunc(all, func(h *esxi.Host) bool { return !h.Software.Follows(d) }) {
		return "ALREADY_IN_DESIRED_STATE", "The cluster is already at the desired commit."
	}
	return "", ""
}

// start runs an operation in the background; apply and stage keep the cluster busy.
// Ours: the task in vCenter's list of recent tasks, with this identifier, exists for apply only (unproven).
func (s *Service) start(task string, op operation, work func(operation)) {
	exclusive := op.action == "apply" || op.action == "stage"
	if exclusive {
		s.mu.Lock()
		s.busy[op.cluster] = task
		s.mu.Unlock()
	}
	op.spec.Commit = task
	go func() {
		work(op)
		if exclusive {
			s.mu.Lock()
			delete(s.busy, op.cluster)
			s.mu.Unlock()
		}
	}()
}

// desired returns what the image of a cluster wants on its hosts; an add-on counts as a component.
func (s *Service) desired(of vcsim.Ref) software.Desired {
	state := s.clusters.State(of)
	d := software.Desired{Components: map[string]string{}, BaseImage: state.BaseImage}
	for name, version := range state.Components {
		d.Components[name] = version
	}
	if state.AddOn.Name != "" {
		d.Components[state.AddOn.Name] = state.AddOn.Version
	}
	return d
}

// members returns the hosts of a cluster, by name.
func (s *Service) members(of vcsim.Ref) []*esxi.Host {
	var found []*esxi.Host
	for _, h := range s.hosts.All() {
		var parent vcsim.Ref
		ctx := s.sim.Context()
		ctx.WithLock(h.Entity, func() { parent = *h.Entity.Parent })
		if parent == of {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *esxi.Host) int { return compare(a.Spec.Name, b.Spec.Name) })
	return found
}
