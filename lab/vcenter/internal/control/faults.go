package control

import (
	"net/http"
	"strconv"

	"dml.vsphere/lab/vcenter/internal/front"
)

func (c *Control) addFault(w http.ResponseWriter, r *http.Request) {
	var rule front.Fault
	if !read(w, r, &rule) {
		return
	}
	id, err := c.front.Faults.Add(rule)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, map[string]int{"id": id})
}

func (c *Control) removeFault(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !c.front.Faults.Remove(id) {
		refuse(w, http.StatusNotFound, "no such fault: "+r.PathValue("id"))
		return
	}
	done(w)
}
