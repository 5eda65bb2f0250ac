package world

import (
	"strings"

	esxcli "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"

	"dml.vsphere/lab/vcenter/internal/datacentre"
)

func (s *Software) vibCommands() map[string]command {
	install := []string{"depot", "dryrun", "force", "maintenancemode", "noliveinstall", "nosigcheck", "proxy", "vibname", "viburl"}
	remove := []string{"dryrun", "force", "maintenancemode", "noliveinstall", "vibname"}
	return map[string]command{
		"software.vib.install":    {params: install, run: s.vibInstall, deaf: dry(s.vibInstall)},
		"software.vib.update":     {params: install, run: s.vibUpdate, deaf: dry(s.vibUpdate)},
		"software.vib.remove":     {params: remove, run: s.vibRemove, deaf: dry(s.vibRemove)},
		"software.vib.list":       {params: []string{"rebootingimage"}, run: s.vibList},
		"software.vib.get":        {params: []string{"rebootingimage", "vibname"}, run: s.vibGet},
		"software.acceptance.get": {run: s.acceptanceGet},
		"software.acceptance.set": {params: []string{"level"}, run: s.acceptanceSet},
		"software.profile.get":    {params: []string{"rebootingimage"}, run: s.profileGet},
	}
}

// dry is what a deaf host answers: the outcome in the words of a real run, and nothing done.
func dry(f action) action {
	return func(ctx *simulator.Context, args esxcli.Values) (*esxcli.Response, *cliError) {
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

// base is the image that changes start from: the pending one, if there is one.
func (s *Software) base() image {
	running, pending := s.images()
	if pending != nil {
		return pending
	}
	return running
}

func options(a esxcli.Values) transaction {
	is := func(name string) bool { return a.Value(name) == "true" }
	return transaction{dryRun: is("dryrun"), force: is("force"), noLiveInstall: is("noliveinstall"), noSigCheck: is("nosigcheck"), pretendMaintenance: is("maintenancemode")}
}

func (s *Software) vibInstall(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	return s.installVIBs(ctx, a, false)
}

func (s *Software) vibUpdate(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	return s.installVIBs(ctx, a, true)
}

func (s *Software) installVIBs(ctx *simulator.Context, a esxcli.Values, update bool) (*esxcli.Response, *cliError) {
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

// plan puts a package where it belongs: to be installed, replaced or skipped.
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

// offered are the packages that the depots and URLs of a command hold.
func (s *Software) offered(a esxcli.Values) ([]datacentre.VIB, *cliError) {
	if len(a["depot"])+len(a["viburl"]) == 0 {
		return nil, cliErrorf("Must specify one of --depot or --viburl")
	}
	var out []datacentre.VIB
	for _, url := range a["viburl"] {
		vibs, ok := s.depot(url)
		switch {
		case !ok:
			return nil, &cliError{lines: []string{"[VibDownloadError]", "('" + url + "', '', \"[Errno 2] No such file or directory: '" + url + "'\")", "url = " + url, seeLog}}
		case !strings.HasSuffix(url, ".vib"):
			return nil, &cliError{lines: []string{"[VibFormatError]", "('" + url + "', 'Could not unpack VIB: not an AR archive')", "filename = " + url, seeLog}}
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

func (s *Software) readDepot(path string) ([]datacentre.VIB, *cliError) {
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
		return nil, &cliError{lines: []string{"[MetadataDownloadError]",
			"Could not download from depot at zip:" + path + "?index.xml, skipping (('zip:" + path + "?index.xml', '', \"Error extracting index.xml from " + path + ": " + why + "\"))",
			"url = zip:" + path + "?index.xml", seeLog}}
	}
	return vibs, nil
}

// chosen are the packages named; all when none is.
func chosen(offered []datacentre.VIB, names []string) ([]datacentre.VIB, *cliError) {
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

func noMatch(search string) *cliError {
	return &cliError{lines: []string{"[NoMatchError]", "No VIB matching VIB search specification '" + search + "'.", "id = " + search, seeLog}}
}

func (s *Software) vibRemove(ctx *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	if len(a["vibname"]) == 0 {
		return nil, cliErrorf("Error: Missing required parameter -n|--vibname")
	}
	t := options(a)
	var err *cliError
	if t.remove, err = chosen(s.base().sorted(), a["vibname"]); err != nil {
		return nil, err
	}
	done, err := s.commit(ctx, &t)
	if err != nil {
		return nil, err
	}
	return t.result("InstallationResult", "VIBs", done, id), nil
}

// result is the struct that install, update, remove and apply answer.
func (t *transaction) result(kind, things string, done outcome, name func(datacentre.VIB) string) *esxcli.Response {
	v := record("Message", done.message, "RebootRequired", truth(done.rebootRequired))
	for field, list := range map[string][]datacentre.VIB{"Installed": t.install, "Removed": t.remove, "Skipped": t.skip} {
		for _, p := range list {
			v[things+field] = append(v[things+field], name(p))
		}
	}
	return rows(kind, v)
}

// shown is the image a list or get is about.
func (s *Software) shown(a esxcli.Values) image {
	running, pending := s.images()
	if a.Value("rebootingimage") == "true" {
		return pending
	}
	return running
}

func (s *Software) vibList(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	out := rows("SummaryExt")
	for _, v := range s.shown(a).sorted() {
		out.Values = append(out.Values, record("AcceptanceLevel", v.AcceptanceLevel, "ID", id(v), "InstallDate", installDate, "Name", v.Name,
			"Platforms", "host", "Status", "", "Vendor", v.Vendor, "Version", v.Version))
	}
	return out, nil
}

func (s *Software) vibGet(_ *simulator.Context, a esxcli.Values) (*esxcli.Response, *cliError) {
	list := s.shown(a).sorted()
	for _, n := range a["vibname"] {
		if _, err := chosen(list, []string{n}); err != nil {
			return nil, &cliError{lines: []string{"[NoMatchError]", "id=" + n}}
		}
	}
	list, _ = chosen(list, a["vibname"]) // all are there
	out := rows("VIBExt")
	for _, v := range list {
		out.Values = append(out.Values, record("AcceptanceLevel", v.AcceptanceLevel, "CreationDate", installDate, "Description", v.Summary, "ID", id(v),
			"InstallDate", installDate, "LiveInstallAllowed", pyTruth(v.LiveInstall), "LiveRemoveAllowed", pyTruth(v.LiveInstall),
			"MaintenanceModeRequired", pyTruth(needsMaintenance(v)), "Name", v.Name, "Overlay", "False", "Payloads", v.Name, "Platforms", "host",
			"StatelessReady", "True", "Status", "", "Summary", v.Summary, "Type", "bootbank", "Vendor", v.Vendor, "Version", v.Version))
	}
	return out, nil
}

// installDate stays the same from run to run.
const installDate = "2026-01-15"

// pyTruth is how esxcli's package commands write booleans.
func pyTruth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
