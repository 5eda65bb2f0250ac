package datacentre

// Hardware is the hardware of a host.
type Hardware struct {
	Vendor         string `yaml:"vendor"`
	Model          string `yaml:"model"`
	Sockets        int16  `yaml:"sockets"`
	CoresPerSocket int16  `yaml:"cores_per_socket"`
	MHz            int32  `yaml:"mhz"`
	MemoryGB       int64  `yaml:"memory_gb"`
	GPUs           []GPU  `yaml:"gpus"`
	NICs           []NIC  `yaml:"nics"`
	// DeviceGroups are the groups of linked vGPUs that the host offers, such as Nvidia:2@grid_a100-40c%NVLink.
	DeviceGroups []string `yaml:"device_groups"`
	// DVXClasses are the classes of the devices with Enhanced DirectPath I/O.
	DVXClasses []DVXClass `yaml:"dvx_classes"`
}

// DVXClass is a class of devices with Enhanced DirectPath I/O. With Checkpoint, their virtual machines can move.
type DVXClass struct {
	Name       string `yaml:"name"`
	Devices    int    `yaml:"devices"`
	Checkpoint bool   `yaml:"checkpoint"`
	SRIOVNIC   bool   `yaml:"sriov_nic"`
}

// GPU is one physical GPU at one PCI address.
type GPU struct {
	PCI   string `yaml:"pci"`
	Model string `yaml:"model"`
	NUMA  int32  `yaml:"numa"`
	MIG   bool   `yaml:"mig"`
}

// GPUModel is the common part of all GPUs of one model.
type GPUModel struct {
	Name        string    `yaml:"name"`
	VendorID    uint16    `yaml:"vendor_id"`
	DeviceID    uint16    `yaml:"device_id"`
	SubVendorID uint16    `yaml:"sub_vendor_id"`
	SubDeviceID uint16    `yaml:"sub_device_id"`
	MemoryMB    int64     `yaml:"memory_mb"`
	MIGCapable  bool      `yaml:"mig_capable"`
	Profiles    []Profile `yaml:"profiles"`
}

// Profile is one vGPU type of a GPU model.
type Profile struct {
	Name     string `yaml:"name"`
	MemoryGB int64  `yaml:"memory_gb"`
	Class    string `yaml:"class"`
	Sharing  string `yaml:"sharing"`
}

// NIC is one port of a network adapter; RDMA is the name of its RDMA device, or empty if it has none.
type NIC struct {
	Device   string `yaml:"device"`
	PCI      string `yaml:"pci"`
	Driver   string `yaml:"driver"`
	Name     string `yaml:"name"`
	VendorID uint16 `yaml:"vendor_id"`
	DeviceID uint16 `yaml:"device_id"`
	SpeedMb  int32  `yaml:"speed_mb"`
	NUMA     int32  `yaml:"numa"`
	RDMA     string `yaml:"rdma"`
	Firmware string `yaml:"firmware"`
	NoDCB    bool   `yaml:"no_dcb"` // its driver does not report flow control
	DCBX     *DCBX  `yaml:"dcbx"`   // absent: the card does not use DCBX
}

// DCBX is the flow control that a card exchanges with the switch.
type DCBX struct {
	Mode    string `yaml:"mode"` // ieee or cee
	Willing bool   `yaml:"willing"`
	// Switch are the priorities that the switch announces; a willing card adopts them.
	Switch []int `yaml:"switch"`
}
