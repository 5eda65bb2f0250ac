package lifecycle

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// softwareService is the service of the operations on the image of a cluster.
const softwareService = "com.vmware.esx.settings.clusters.software"

// restTime is the format of times in the REST API.
const restTime = "2006-01-02T15:04:05.000Z"

func (s *Service) now() string { return s.sim.Now().UTC().Format(restTime) }

// restDone returns a finished task, which succeeded or failed with a message.
func (s *Service) restDone(result any, failure string) string {
	id := s.begin("", "lab", vcsim.Ref{})
	s.end(id, result, failure)
	return id
}

// begin returns a new task that runs.
// VMware: vSphere Automation SDK, com.vmware.cis.task.Info.
func (s *Service) begin(user, operation string, target vcsim.Ref) string {
	task := map[string]any{"status": "RUNNING", "service": softwareService, "operation": operation,
		"cancelable": false, "description": restMessage("lab.task", operation), "start_time": s.now(), "user": user}
	if target.Value != "" {
		task["target"] = map[string]any{"type": target.Type, "id": target.Value}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	id := "lab-rest-task-" + strconv.Itoa(s.counter)
	s.tasks[id] = task
	return id
}

// set replaces fields of a task.
func (s *Service) set(id string, fields map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	task := maps.Clone(s.tasks[id])
	maps.Copy(task, fields)
	s.tasks[id] = task
}

// progress sets the progress of a task in per cent.
func (s *Service) progress(id string, percent int, text string) {
	s.set(id, map[string]any{"progress": map[string]any{"total": 100, "completed": percent,
		"message": restMessage("lab.progress", text)}})
}

// end ends a task, which succeeded, or failed with a message.
func (s *Service) end(id string, result any, failure string) {
	fields := map[string]any{"status": "SUCCEEDED", "result": result, "end_time": s.now()}
	if failure != "" {
		fields["status"] = "FAILED"
		fields["error"] = map[string]any{"error_type": "ERROR", "messages": []any{restMessage("lab.rest", failure)}}
	}
	s.set(id, fields)
}

// restTask returns the state of a task.
// VMware: vSphere Automation API reference, GET /api/cis/tasks/TASK: status, result, error.
func (s *Service) restTask(out http.ResponseWriter, id string) {
	s.mu.Lock()
	task, ok := s.tasks[id]
	s.mu.Unlock()
	if !ok {
		restError(out, http.StatusNotFound, "NOT_FOUND", "The task '"+id+"' does not exist.")
		return
	}
	restReply(out, task)
}

// restTasks lists tasks without their results.
// VMware: its description of the REST API, 7.0.3 and 8.0.2, POST /api/cis/tasks?action=list: services or tasks must be
// given; services, operations, status, users. There is no GET.
func (s *Service) restTasks(out http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Query().Get("action") != "list" {
		restError(out, http.StatusNotFound, "NOT_FOUND", "The resource does not exist.")
		return
	}
	var asked struct {
		Filter map[string][]string `json:"filter_spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	query := asked.Filter
	if len(query["services"]) == 0 && len(query["tasks"]) == 0 {
		restError(out, http.StatusBadRequest, "INVALID_ARGUMENT", "Either tasks or services must be specified.")
		return
	}
	fields := map[string]string{"services": "service", "operations": "operation", "status": "status", "users": "user"}
	found := map[string]any{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, task := range s.tasks {
		matches := len(query["tasks"]) == 0 || slices.Contains(query["tasks"], id)
		for key, field := range fields {
			value, _ := task[field].(string)
			matches = matches && (len(query[key]) == 0 || slices.Contains(query[key], value))
		}
		if matches {
			info := maps.Clone(task)
			delete(info, "result")
			delete(info, "progress")
			found[id] = info
		}
	}
	restReply(out, found)
}

// patience is how long a host may take to enter maintenance mode.
const patience = 3 * time.Second
