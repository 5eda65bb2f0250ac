package lifecycle

import (
	"cmp"
	"strings"

	"dml.vsphere/lab/vcenter/internal/esxi"
	"dml.vsphere/lab/vcenter/internal/vcsim"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// progressOf is the state of an apply or a stage while it runs, and at its end.
type progressOf struct {
	s      *Service
	op     operation
	status map[string]string // by host
	text   map[string]string
}

// result returns the result of the operation so far.
// VMware: vSphere Automation SDK, Software.ApplyResult and StageResult: status is unset while the operation runs.
func (p *progressOf) result(over bool) map[string]any {
	info, status := map[string]any{}, map[string]any{}
	by := map[string][]string{"OK": {}, "ERROR": {}, "SKIPPED": {}, "RUNNING": {}}
	whole := "OK"
	for _, h := range p.op.hosts {
		id := h.Self.Value
		info[id] = map[string]any{"name": h.Spec.Name}
		state := cmp.Or(p.status[id], "RUNNING")
		status[id] = p.s.statusOf(state, p.text[id])
		by[state] = append(by[state], id)
		if state == "ERROR" {
			whole = "ERROR"
		}
	}
	result := map[string]any{"commit": p.op.spec.Commit, "host_info": info, "host_status": status,
		"successful_hosts": by["OK"], "failed_hosts": by["ERROR"], "skipped_hosts": by["SKIPPED"]}
	if over {
		result["status"] = p.s.statusOf(whole, "")
	}
	return result
}

func (s *Service) statusOf(state, text string) map[string]any {
	notifications := map[string]any{}
	if text != "" {
		notifications["errors"] = []any{s.notification(text)}
	}
	return map[string]any{"status": state, "start_time": s.now(), "end_time": s.now(), "notifications": notifications}
}

// notification is a message of vLCM.
// VMware: vSphere Automation SDK, com.vmware.esx.settings.Notification; Notifications has info, warnings and errors.
func (s *Service) notification(text string) map[string]any {
	return map[string]any{"id": "lab.vlcm", "time": s.now(), "message": restMessage("lab.vlcm", text)}
}

// apply brings the hosts to the image, one after another; a host that follows it is skipped.
// VMware: vSphere Automation SDK, Software.apply: without accept_eula it can fail because of the EULA.
// Ours: a host that fails ends the operation, whose task then succeeds with the status ERROR (unproven).
func (s *Service) apply(op operation) {
	task := op.spec.Commit
	if !op.spec.AcceptEULA && !s.clusters.State(op.cluster).EULAAccepted {
		s.end(task, nil, "The VMware End User License Agreement (EULA) has not been accepted.")
		return
	}
	p := &progressOf{s: s, op: op, status: map[string]string{}, text: map[string]string{}}
	ctx := s.sim.ContextOf(op.user)
	done := make(chan struct{})
	s.sim.StartFor(ctx, op.cluster, s.sim.Name(op.cluster), "applyTask", softwareService+".apply",
		func(j *vcsim.Job) (any, vcsim.Fault) {
			defer close(done)
			for i, h := range op.hosts {
				if !s.applyTo(j, h, p, i) {
					break
				}
			}
			return nil, nil
		})
	<-done
	s.end(task, p.result(true), "")
}

// applyTo brings one host to the image, and reports whether the operation goes on.
func (s *Service) applyTo(j *vcsim.Job, h *esxi.Host, p *progressOf, index int) bool {
	id, d := h.Self.Value, s.desired(p.op.cluster)
	if h.Software.Follows(d) {
		p.status[id] = "SKIPPED"
		return true
	}
	show := func(percent int) {
		whole := (100*index + percent) / len(p.op.hosts)
		j.Progress(int32(whole))
		s.progress(p.op.spec.Commit, whole, "Remediating "+h.Spec.Name)
		s.set(p.op.spec.Commit, map[string]any{"result": p.result(false)})
	}
	show(5)
	if failure := h.Remediate(j, d, patience, show); failure != "" {
		p.status[id], p.text[id] = "ERROR", failure
		return false
	}
	p.status[id] = "OK"
	return true
}

// stage copies the packages to the hosts.
// VMware: vSphere Automation SDK, Software.stage, since 8.0.0.1.
// Ours: nothing is copied.
func (s *Service) stage(op operation) {
	p := &progressOf{s: s, op: op, status: map[string]string{}, text: map[string]string{}}
	for _, h := range op.hosts {
		p.status[h.Self.Value] = "OK"
		if h.Software.Follows(s.desired(op.cluster)) {
			p.status[h.Self.Value] = "SKIPPED"
		}
	}
	s.end(op.spec.Commit, p.result(true), "")
}

// scan compares the hosts with the image; its result is the compliance of the cluster.
func (s *Service) scan(op operation) { s.end(op.spec.Commit, s.compliance(op.cluster), "") }

// check looks for what keeps the hosts from being remediated.
// VMware: vSphere Automation SDK, Software.CheckResult, EntityCheckResult, CheckStatus.
// Ours: the checks: connection, running virtual machines, and issues that the control interface sets.
func (s *Service) check(op operation) {
	whole, results, info := "OK", []any{}, map[string]any{}
	for _, h := range op.hosts {
		issues := s.issues(h, op.cluster)
		state := "OK"
		if len(issues) > 0 {
			state, whole = "ERROR", "ERROR"
		}
		info[h.Self.Value] = map[string]any{"name": h.Spec.Name}
		results = append(results, map[string]any{"type": "HOST", "host": h.Self.Value, "status": state,
			"check_statuses": []any{map[string]any{
				"check": map[string]any{"check": "lab.host", "name": restMessage("lab.host", "Host health"),
					"description": restMessage("lab.host", "Checks the health of the host")},
				"status": state, "issues": messages(issues), "check_issues": checkIssues(issues)}}})
	}
	s.end(op.spec.Commit, map[string]any{"status": whole, "start_time": s.now(), "end_time": s.now(),
		"commit": op.spec.Commit, "host_info": info, "entity_results": results}, "")
}

func (s *Service) issues(h *esxi.Host, of vcsim.Ref) []string {
	ctx := s.sim.Context()
	issues := append([]string{}, s.clusters.State(of).CheckIssues...)
	if !h.Connected(ctx) {
		return append(issues, "The host is not connected.")
	}
	if names := h.PoweredOn(ctx); len(names) > 0 && !h.Runtime(ctx).InMaintenanceMode {
		issues = append(issues, "The host has running virtual machines: "+strings.Join(names, ", "))
	}
	return issues
}

func messages(texts []string) []any {
	out := []any{}
	for _, text := range texts {
		out = append(out, restMessage("lab.check", text))
	}
	return out
}

func checkIssues(texts []string) []any {
	out := []any{}
	for _, text := range texts {
		out = append(out, map[string]any{"description": restMessage("lab.check", text),
			"resolution": restMessage("lab.check", "Remove the cause.")})
	}
	return out
}
