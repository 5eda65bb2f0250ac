package control

import (
	"net/http"

	"dml.vsphere/lab/vcenter/internal/world"
)

func (c *Control) patchHost(w http.ResponseWriter, r *http.Request) {
	h, ok := c.world.HostNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such host: "+r.PathValue("name"))
		return
	}
	var change world.HostChange
	if !read(w, r, &change) {
		return
	}
	if err := c.world.ChangeHost(h, change); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, h.Report())
}

func (c *Control) cluster(w http.ResponseWriter, r *http.Request) {
	cluster, ok := c.world.ClusterNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such cluster: "+r.PathValue("name"))
		return
	}
	reply(w, cluster.Report())
}

func (c *Control) patchCluster(w http.ResponseWriter, r *http.Request) {
	cluster, ok := c.world.ClusterNamed(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such cluster: "+r.PathValue("name"))
		return
	}
	var change world.ClusterChange
	if !read(w, r, &change) {
		return
	}
	if err := cluster.Apply(change); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, cluster.Report())
}
