// Package datacentre reads the YAML description of a simulated data centre.
package datacentre

// Datacentre is a description file.
type Datacentre struct {
	Release        string         `yaml:"release"` // instead of the next three
	Version        string         `yaml:"version"`
	APIVersion     string         `yaml:"api_version"`
	Build          string         `yaml:"build"`
	Name           string         `yaml:"datacenter"`
	VcenterOptions map[string]any `yaml:"vcenter_options"`
	Datastores     []string       `yaml:"datastores"`
	// The datastores that fit a storage policy; all fit one that is not named.
	StoragePolicies map[string][]string `yaml:"storage_policies"`
	Hardware        map[string]Hardware `yaml:"hardware"`
	GPUModels       map[string]GPUModel `yaml:"gpu_models"`
	Depots          []Depot             `yaml:"depots"`
	Switches        []Switch            `yaml:"switches"`
	HostDefaults    Host                `yaml:"host_defaults"`
	Clusters        []Cluster           `yaml:"clusters"`
	VMs             []VM                `yaml:"vms"`
	// EncryptedVMotion is whether moves are encrypted, as they are by default if both hosts support it.
	EncryptedVMotion bool `yaml:"encrypted_vmotion"`
	// StatisticsLevel is the level of the historical intervals, 1 to 4.
	StatisticsLevel int32 `yaml:"statistics_level"`
	// HostsOut is how many hosts of a cluster clients may have out of service at once; 0 means 1.
	HostsOut int `yaml:"hosts_out"`
	// Foreign are names of objects that no client may change, with all objects below them.
	Foreign []string `yaml:"foreign"`
}

// Cluster is one cluster and its hosts.
type Cluster struct {
	Name            string            `yaml:"name"`
	DRS             DRS               `yaml:"drs"`
	HA              HA                `yaml:"ha"`
	ImageManaged    bool              `yaml:"image_managed"`
	ImageComponents map[string]string `yaml:"image_components"`
	ConfigProfile   bool              `yaml:"config_profile"`
	VsanResyncBytes int64             `yaml:"vsan_resync_bytes"`
	// EVC is the key of the EVC mode, such as intel-skylake; empty without EVC.
	EVC   string `yaml:"evc"`
	Hosts []Host `yaml:"hosts"`
}

// DRS is the cluster's DRS configuration.
type DRS struct {
	Enabled   bool              `yaml:"enabled" json:"enabled"`
	Behaviour string            `yaml:"behaviour" json:"behaviour"`
	Options   map[string]string `yaml:"options" json:"options"`
}

// HA is the cluster's HA configuration.
type HA struct {
	Enabled          bool  `yaml:"enabled" json:"enabled"`
	AdmissionControl bool  `yaml:"admission_control" json:"admission_control"`
	FailoverLevel    int32 `yaml:"failover_level" json:"failover_level"`
}

// Host is one host, or Count equal hosts; a zero field takes the value of host_defaults.
type Host struct {
	Name            string              `yaml:"name"`
	Count           int                 `yaml:"count"`
	First           int                 `yaml:"first"`
	Hardware        string              `yaml:"hardware"`
	AcceptanceLevel string              `yaml:"acceptance_level"`
	Maintenance     bool                `yaml:"maintenance"`
	Passthrough     []string            `yaml:"passthrough"`
	ModuleOptions   map[string]string   `yaml:"module_options"`
	Options         map[string]any      `yaml:"options"`
	VIBs            []VIB               `yaml:"vibs"`
	Vmkernel        []Vmkernel          `yaml:"vmkernel"`
	Uplinks         map[string][]string `yaml:"uplinks"`
	Rulesets        map[string]bool     `yaml:"rulesets"`
	Graphics        Graphics            `yaml:"graphics"`
	RDMAUsers       []string            `yaml:"rdma_users"`
	RebootSeconds   float64             `yaml:"reboot_seconds"`
	VmotionSeconds  float64             `yaml:"vmotion_seconds"`
	GPULoad         map[string]GPULoad  `yaml:"gpu_load"` // by PCI address; absent: not measured
	// EncryptedVMotion is whether the host can encrypt moves; absent: as the data centre.
	EncryptedVMotion *bool `yaml:"encrypted_vmotion"`
	// EVC is the mode of its cluster.
	EVC string `yaml:"-"`
}

// Graphics is the host's initial graphics configuration, both configured and active.
type Graphics struct {
	Default string `yaml:"default"`
	Policy  string `yaml:"policy"`
}

// Vmkernel is one vmkernel adapter; "{n}" in the address stands for the host's number.
type Vmkernel struct {
	Device    string   `yaml:"device"`
	Portgroup string   `yaml:"portgroup"`
	Switch    string   `yaml:"switch"`
	Address   string   `yaml:"address"`
	Netmask   string   `yaml:"netmask"`
	MTU       int32    `yaml:"mtu"`
	Services  []string `yaml:"services"`
	NetStack  string   `yaml:"netstack"`
}

// Switch is one distributed switch; Uplinks are the vmnics that every host connects to it.
type Switch struct {
	Name       string      `yaml:"name"`
	MTU        int32       `yaml:"mtu"`
	Uplinks    []string    `yaml:"uplinks"`
	Portgroups []Portgroup `yaml:"portgroups"`
}

// Portgroup is one distributed port group.
type Portgroup struct {
	Name   string   `yaml:"name"`
	VLAN   int32    `yaml:"vlan"`
	Active []string `yaml:"active_uplinks"`
}

// VIB is one package that is installed on a host or available in a depot.
type VIB struct {
	Name                string `yaml:"name"`
	Version             string `yaml:"version"`
	Vendor              string `yaml:"vendor"`
	AcceptanceLevel     string `yaml:"acceptance_level"`
	Summary             string `yaml:"summary"`
	LiveInstall         bool   `yaml:"live_install"`
	MaintenanceRequired *bool  `yaml:"maintenance_required"`
	Component           string `yaml:"component"`
	ComponentTitle      string `yaml:"component_title"`
}

// Depot maps paths on the host or URLs (of a zip, an index or a .vib) to the VIBs at them. The depot of vCenter has
// them from the start, unless the depot is unimported.
type Depot struct {
	Paths      []string `yaml:"paths"`
	VIBs       []VIB    `yaml:"vibs"`
	Unimported bool     `yaml:"unimported"`
}

// VM is one virtual machine that exists from the start.
type VM struct {
	Name         string            `yaml:"name"`
	Count        int               `yaml:"count"`
	First        int               `yaml:"first"`
	Host         string            `yaml:"host"`
	PoweredOn    bool              `yaml:"powered_on"`
	RunningHours float64           `yaml:"running_hours"` // time since the power-on
	CPUs         int32             `yaml:"cpus"`
	MemoryMB     int64             `yaml:"memory_mb"`
	VGPU         string            `yaml:"vgpu"`
	VGPUs        []string          `yaml:"vgpus"`
	Passthrough  string            `yaml:"passthrough"`
	PVRDMA       string            `yaml:"pvrdma"`
	SRIOV        string            `yaml:"sriov"`
	Template     bool              `yaml:"template"`
	Firmware     string            `yaml:"firmware"`
	Snapshot     string            `yaml:"snapshot"`
	Owner        string            `yaml:"owner"`
	Folder       string            `yaml:"folder"`
	Pool         string            `yaml:"pool"`
	Attributes   map[string]string `yaml:"attributes"`
	ExtraConfig  map[string]string `yaml:"extra_config"`
}
