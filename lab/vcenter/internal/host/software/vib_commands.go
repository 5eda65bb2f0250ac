package software

import (
	"strings"

	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
	"dml.vsphere/lab/vcenter/internal/esxcli"
)

func (s *System) vibCommands() map[string]esxcli.Command {
	install := []string{"depot", "dryrun", "force", "maintenancemode", "noliveinstall", "nosigcheck", "proxy",
		"vibname", "viburl"}
	remove := []string{"dryrun", "force", "maintenancemode", "noliveinstall", "vibname"}
	return map[string]esxcli.Command{
		"software.vib.install":    {Params: install, Run: s.vibInstall, Deaf: deafAnswer(s.vibInstall)},
		"software.vib.update":     {Params: install, Run: s.vibUpdate, Deaf: deafAnswer(s.vibUpdate)},
		"software.vib.remove":     {Params: remove, Run: s.vibRemove, Deaf: deafAnswer(s.vibRemove)},
		"software.vib.list":       {Params: []string{"rebootingimage"}, Run: s.vibList},
		"software.vib.get":        {Params: []string{"rebootingimage", "vibname"}, Run: s.vibGet},
		"software.acceptance.get": {Run: s.acceptanceGet},
		"software.acceptance.set": {Params: []string{"level"}, Run: s.acceptanceSet},
		"software.profile.get":    {Params: []string{"rebootingimage"}, Run: s.profileGet},
	}
}

// deafAnswer returns the answer of a deaf host: the result of a real run, without any change.
func deafAnswer(f esxcli.Action) esxcli.Action {
	return func(ctx *simulator.Context, args esxcli.Values) (*esxcli.Response, *esxcli.Error) {
		args["dryrun"] = []string{"true"}
		res, err := f(ctx, args)
		if err == nil && res.Values[0].Value("Message") == saidDryRun {
			res.Values[0]["Message"] = []string{saidDone}
			if res.Values[0].Value("RebootRequired") == "true" {
				res.Values[0]["Message"] = []string{saidReboot}
			}
		}
		return res, err
	}
}

// base returns the image from which a change starts: the pending one, or else the running one.
func (s *System) base() image {
	running, pending := s.images()
	if pending != nil {
		return pending
	}
	return running
}

func options(a esxcli.Values) transaction {
	is := func(name string) bool { return a.Value(name) == "true" }
	return transaction{dryRun: is("dryrun"), force: is("force"), noLiveInstall: is("noliveinstall"),
		noSigCheck: is("nosigcheck"), pretendMaintenance: is("maintenancemode")}
}

// vibInstall installs packages from a depot (-d, zip or URL) or from VIB files (-v), and replaces other versions.
// VMware: govmomi, simulator/esx/command_info.go (recorded from ESXi 8.0.1): parameters and fields of the result.
// Ours: the texts of the refusals, modelled on public logs.
func (s *System) vibInstall(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	return s.installVIBs(ctx, a, false)
}

// vibUpdate installs only newer versions of installed packages.
// VMware: help of esxcli software vib update.
func (s *System) vibUpdate(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	return s.installVIBs(ctx, a, true)
}

// installVIBs plans and commits the transaction of an installation or an update.
func (s *System) installVIBs(ctx *simulator.Context, a esxcli.Values, update bool) (*esxcli.Response, *esxcli.Error) {
	offered, err := s.offered(a)
	if err != nil {
		return nil, err
	}
	t := options(a)
	for _, v := range offered {
		t.plan(s.base(), v, update)
	}
	done, err := s.commit(ctx, &t)
	if err != nil {
		return nil, err
	}
	return t.result("InstallationResult", "VIBs", done, id), nil
}

// plan adds a package to those that are installed, replaced or skipped.
func (t *transaction) plan(base image, v datacentre.VIB, update bool) {
	old, present := base[v.Name]
	switch {
	case present && old.Version == v.Version, update && (!present || !newer(v.Version, old.Version)):
		t.skip = append(t.skip, v)
	default:
		if present {
			t.remove = append(t.remove, old)
		}
		t.install = append(t.install, v)
	}
}

// offered returns the packages in the depots and URLs of a command.
func (s *System) offered(a esxcli.Values) ([]datacentre.VIB, *esxcli.Error) {
	if len(a["depot"])+len(a["viburl"]) == 0 {
		return nil, esxcli.Errorf("Must specify one of --depot or --viburl")
	}
	var out []datacentre.VIB
	for _, url := range a["viburl"] {
		vibs, ok := s.depot(url)
		switch {
		case !ok:
			return nil,
				&esxcli.Error{
					Lines: []string{"[VibDownloadError]",
						"('" + url + "', '', \"[Errno 2] No such file or directory: '" + url + "'\")", "url = " + url,
						seeLog}}
		case !strings.HasSuffix(url, ".vib"):
			return nil,
				&esxcli.Error{Lines: []string{"[VibFormatError]",
					"('" + url + "', 'Could not unpack VIB: not an AR archive')", "filename = " + url, seeLog}}
		}
		out = append(out, vibs...)
	}
	for _, path := range a["depot"] {
		vibs, err := s.readDepot(path)
		if err != nil {
			return nil, err
		}
		out = append(out, vibs...)
	}
	return chosen(out, a["vibname"])
}

// readDepot returns the packages of a depot: a zip with an absolute path, or a URL.
// VMware: VMware documentation, esxcli software vib install -d requires the full path of a zip or a URL.
// Ours: the lines of MetadataDownloadError, modelled on public logs.
func (s *System) readDepot(path string) ([]datacentre.VIB, *esxcli.Error) {
	why := ""
	vibs, ok := s.depot(path)
	switch {
	case strings.HasSuffix(path, ".vib"):
		why = "File is not a zip file"
	case !strings.HasPrefix(path, "/") && !strings.Contains(path, "://"):
		why = "the path is not absolute"
	case !ok:
		why = "[Errno 2] No such file or directory: '" + path + "'"
	}
	if why != "" {
		index := "zip:" + path + "?index.xml"
		return nil, &esxcli.Error{Lines: []string{"[MetadataDownloadError]",
			"Could not download from depot at " + index + ", skipping (('" + index + "', '', " +
				"\"Error extracting index.xml from " + path + ": " + why + "\"))",
			"url = " + index, seeLog}}
	}
	return vibs, nil
}

// chosen returns the named packages, or all if none is named.
func chosen(offered []datacentre.VIB, names []string) ([]datacentre.VIB, *esxcli.Error) {
	if len(names) == 0 {
		return offered, nil
	}
	var out []datacentre.VIB
	for _, n := range names {
		found := false
		for _, v := range offered {
			if named(v, n) {
				found = true
				out = append(out, v)
			}
		}
		if !found {
			return nil, noMatch(n)
		}
	}
	return out, nil
}

func noMatch(search string) *esxcli.Error {
	return &esxcli.Error{Lines: []string{"[NoMatchError]",
		"No VIB matching VIB search specification '" + search + "'.", "id = " + search, seeLog}}
}

// vibRemove removes packages.
// VMware: govmomi, simulator/esx/command_info.go (recorded from ESXi 8.0.1): parameters and fields of the result.
func (s *System) vibRemove(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	if len(a["vibname"]) == 0 {
		return nil, esxcli.Errorf("Error: Missing required parameter -n|--vibname")
	}
	t := options(a)
	var err *esxcli.Error
	if t.remove, err = chosen(s.base().sorted(), a["vibname"]); err != nil {
		return nil, err
	}
	done, err := s.commit(ctx, &t)
	if err != nil {
		return nil, err
	}
	return t.result("InstallationResult", "VIBs", done, id), nil
}

// result returns the struct that install, update, remove and apply return.
func (t *transaction) result(kind, things string, done outcome, name func(datacentre.VIB) string) *esxcli.Response {
	v := esxcli.Record("Message", done.message, "RebootRequired", esxcli.Bool(done.rebootRequired))
	for field, list := range map[string][]datacentre.VIB{"Installed": t.install, "Removed": t.remove,
		"Skipped": t.skip} {
		for _, p := range list {
			v[things+field] = append(v[things+field], name(p))
		}
	}
	return esxcli.Rows(kind, v)
}

// listedImage returns the image that a list or get command shows.
func (s *System) listedImage(a esxcli.Values) image {
	running, pending := s.images()
	if a.Value("rebootingimage") == "true" {
		return pending
	}
	return running
}

// vibList returns the running packages, or with rebootingimage those of the next boot.
// VMware: govmomi, simulator/esx/command_info.go (recorded from ESXi 8.0.1): software vib list.
func (s *System) vibList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	out := esxcli.Rows("SummaryExt")
	for _, v := range s.listedImage(a).sorted() {
		out.Values = append(out.Values, esxcli.Record("AcceptanceLevel", v.AcceptanceLevel, "ID", id(v),
			"InstallDate", InstallDate, "Name", v.Name,
			"Platforms", "host", "Status", "", "Vendor", v.Vendor, "Version", v.Version))
	}
	return out, nil
}

// vibGet returns the details of packages, or NoMatchError for an absent package.
// VMware: govmomi, simulator/esxcli.go: fields and the lines of NoMatchError; booleans are True and False.
func (s *System) vibGet(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *esxcli.Error) {
	list := s.listedImage(a).sorted()
	for _, n := range a["vibname"] {
		if _, err := chosen(list, []string{n}); err != nil {
			return nil, &esxcli.Error{Lines: []string{"[NoMatchError]", "id=" + n}}
		}
	}
	list, _ = chosen(list, a["vibname"]) // all exist
	out := esxcli.Rows("VIBExt")
	for _, v := range list {
		out.Values = append(out.Values, esxcli.Record("AcceptanceLevel", v.AcceptanceLevel,
			"CreationDate", InstallDate, "Description", v.Summary, "ID", id(v),
			"InstallDate", InstallDate, "LiveInstallAllowed", pythonBool(v.LiveInstall),
			"LiveRemoveAllowed", pythonBool(v.LiveInstall),
			"MaintenanceModeRequired", pythonBool(needsMaintenance(v)), "Name", v.Name, "Overlay", "False",
			"Payloads", v.Name, "Platforms", "host",
			"StatelessReady", "True", "Status", "", "Summary", v.Summary, "Type", "bootbank", "Vendor", v.Vendor,
			"Version", v.Version))
	}
	return out, nil
}

// InstallDate is the same in every run.
const InstallDate = "2026-01-15"

// pythonBool returns a boolean in the format of esxcli's package commands.
func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
