package control

import (
	"net/http"

	"dml.vsphere/lab/vcenter/internal/vm"
)

func (c *Control) external(w http.ResponseWriter, _ *http.Request) {
	listener, ops, orders := c.vcenter.Machines().External.State()
	reply(w, map[string]any{"listener": listener, "ops": ops, "orders": orders})
}

func (c *Control) startExternalMode(w http.ResponseWriter, r *http.Request) {
	var wish struct {
		Listener string   `json:"listener"`
		Ops      []string `json:"ops"`
	}
	if !read(w, r, &wish) {
		return
	}
	if err := c.vcenter.Machines().External.Listen(wish.Listener, wish.Ops); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	done(w)
}

func (c *Control) endExternalMode(w http.ResponseWriter, _ *http.Request) {
	if err := c.vcenter.Machines().External.Listen("", nil); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	done(w)
}

func (c *Control) updateOrder(w http.ResponseWriter, r *http.Request) {
	var n vm.OrderUpdate
	if !read(w, r, &n) {
		return
	}
	if n.Progress == nil && !n.Done && n.Failed == "" {
		refuse(w, http.StatusBadRequest, "news are progress, done or failed")
		return
	}
	if err := c.vcenter.Machines().External.Report(r.PathValue("id"), n); err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	done(w)
}

func (c *Control) machine(w http.ResponseWriter, r *http.Request) {
	report, ok := c.vcenter.Machines().Report(r.PathValue("name"))
	if !ok {
		refuse(w, http.StatusNotFound, "no such virtual machine: "+r.PathValue("name"))
		return
	}
	reply(w, report)
}

func (c *Control) guest(w http.ResponseWriter, r *http.Request) {
	var told struct {
		Hostname string `json:"hostname"`
		Address  string `json:"address"`
	}
	if !read(w, r, &told) {
		return
	}
	if !c.vcenter.Machines().SetGuest(r.PathValue("name"), told.Hostname, told.Address) {
		refuse(w, http.StatusNotFound, "no such virtual machine: "+r.PathValue("name"))
		return
	}
	done(w)
}

func (c *Control) moveByDRS(w http.ResponseWriter, r *http.Request) {
	var wish struct {
		Host string `json:"host"`
	}
	if !read(w, r, &wish) {
		return
	}
	if err := c.vcenter.MoveByDRS(r.PathValue("name"), wish.Host); err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	done(w)
}
