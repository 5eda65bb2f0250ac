package control

import (
	"net/http"

	"dml.vsphere/lab/vcenter/internal/cluster"
	"dml.vsphere/lab/vcenter/internal/esxi"
)

func (c *Control) patchHost(w http.ResponseWriter, r *http.Request) {
	h, ok := c.vcenter.HostNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such host: "+r.PathValue("name"))
		return
	}
	var change esxi.Change
	if !read(w, r, &change) {
		return
	}
	if err := c.vcenter.ChangeHost(h, change); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, h.Report())
}

func (c *Control) cluster(w http.ResponseWriter, r *http.Request) {
	found, ok := c.vcenter.ClusterNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such cluster: "+r.PathValue("name"))
		return
	}
	reply(w, found.Report())
}

func (c *Control) patchCluster(w http.ResponseWriter, r *http.Request) {
	found, ok := c.vcenter.ClusterNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such cluster: "+r.PathValue("name"))
		return
	}
	var change cluster.Change
	if !read(w, r, &change) {
		return
	}
	if err := found.Apply(change); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, found.Report())
}
