package judge

import (
	"regexp"
	"slices"

	"dml.vsphere/lab/vcenter/internal/vcsim"
)

// restEntity is an entity in a path or a body of the REST API.
var restEntity = regexp.MustCompile(`\b(?:vm|host|domain-c|dvs|dvportgroup|group-[a-z])-?\d+\b`)

// Call judges a write of a client before it is carried out. A write to a foreign object breaks the rule even if the
// server refuses it.
func (j *Judge) Call(method string, on vcsim.Ref, body []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if method == "CancelTask" {
		j.over(on)
	}
	if name := j.foreign(on); name != "" {
		j.broken(Foreign, "%s of %s, and %s is foreign", method, j.entities[on].name, name)
	}
	if on.Type == "" {
		for _, value := range restEntity.FindAllString(method+" "+string(body), -1) {
			j.restCall(method, value)
		}
	}
}

func (j *Judge) restCall(method, value string) {
	for ref := range j.entities {
		if name := j.foreign(ref); ref.Value == value && name != "" {
			j.broken(Foreign, "%s of %s, and %s is foreign", method, j.entities[ref].name, name)
		}
	}
}

// foreign returns the name of the object or of the one above it that the description declares as foreign.
func (j *Judge) foreign(ref vcsim.Ref) string {
	for e := j.entities[ref]; e != nil; e = j.entities[e.parent] {
		if slices.Contains(j.sim.Description.Foreign, e.name) {
			return e.name
		}
	}
	return ""
}
