package judge

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// lockPrefix begins the name of the folder of a lock; the id of the cluster follows. The folder has numbered
// generations, and the names of the folders in them are the lines of the record.
// Ours: plugins/module_utils/maintenance/lock/folders.py and lock_rules.py.
const lockPrefix = "dml.vsphere.lock "

// record is the present generation of the lock of a cluster.
type record struct {
	number int
	held   bool
	fields map[string]string
}

// generation judges a folder that became the next generation of a lock by its new name.
func (j *Judge) generation(folder vcsim.Ref) {
	e := j.entities[folder]
	root := j.entities[e.parent]
	number, err := strconv.Atoi(e.name)
	if err != nil || root == nil || !strings.HasPrefix(root.name, lockPrefix) {
		return
	}
	cluster := vcsim.Ref{Type: "ClusterComputeResource", Value: strings.TrimPrefix(root.name, lockPrefix)}
	name := cluster.Value
	if c := j.entities[cluster]; c != nil {
		name = c.name
	}
	before := j.locks[e.parent]
	if number <= before.number {
		return // an earlier generation, of which the folders are removed
	}
	next := j.read(number, folder)
	j.locks[e.parent] = next
	was, is := before.fields["run"], next.fields["run"]
	if before.held && was != is && j.counts(before) {
		j.broken(Lock, "run %s took the lock of %s from run %s, which held it", is, name, was)
	}
	if leaving := j.leaving(cluster); before.held && !next.held && leaving != "" {
		j.broken(Lock, "run %s freed the lock of %s while %s was leaving service", is, name, leaving)
	}
}

// read returns the record in a generation.
func (j *Judge) read(number int, folder vcsim.Ref) record {
	var lines []string
	for _, e := range j.entities {
		if e.parent == folder {
			lines = append(lines, e.name)
		}
	}
	slices.Sort(lines)
	fields := map[string]string{}
	for _, word := range strings.Fields(strings.Join(lines, " ")) {
		if key, value, ok := strings.Cut(word, "="); ok {
			fields[key] = value
		}
	}
	return record{number: number, held: fields["state"] == "held", fields: fields}
}

// counts reports whether a held lock has neither run out nor lost its process, as far as this machine knows.
func (j *Judge) counts(r record) bool {
	until, err := time.Parse(time.RFC3339, r.fields["until"])
	if err != nil || !j.sim.Now().Before(until) {
		return false
	}
	return r.fields["pid"] == "" || started(r.fields["pid"]) == r.fields["started"]
}

// started returns the time at which a process of this machine started, as the record has it, or "".
func started(pid string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	if fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// leaving returns the name of a host of a cluster that a running task takes out of service, or "".
func (j *Judge) leaving(cluster vcsim.Ref) string {
	for _, e := range j.entities {
		if e.parent == cluster && len(e.leaving) > 0 {
			return e.name
		}
	}
	return ""
}
