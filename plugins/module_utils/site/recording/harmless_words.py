# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Words that identify no site: they may stay in the free text of a recording; pure.

They are the words within the names of the vSphere API (pyVmomi), those in the descriptions of its events, tasks,
privileges and counters (the tables of govmomi's simulator), those of hardware vendors, and plain English. Words that
are also names of persons or places are left out.
"""

from __future__ import annotations

_TEXT = """
aacraid aam aarch64 abandon abdicate able abort aborted about above absent absolute ac acceleration accept acceptance
accepted access accessibility accessible according account acknowledge acknowledged acl acpi acquire acquired acquires
across act actav action actions activate activates activating activation activationlatencystats activationstats active
actively activeness activewrite activity actpk actually ad adapter adapters add added adding addon address addresses
adds admin administrator administrators admission adp adv advanced advertise aes af affect affected affin affinity
after again against agency agent agents aggregate aggregated aggregation aggressive agp ah ahci aic aie alarm alarms
alert algo algorithm alias aliases all allflash alloc allocate allocated allocates allocating allocation allocations
allow allowed allows almalinux alone already also altbootbank alternate always am amazonlinux ambiguous amd amd64
among amount ampere an analytics analyzer anchor anchors and annotate annotates annotation another answer anti any
anything apart apd api apidevversionenabled app append appliance applicable application applications applied applies
apply applying apps apr architecture archivaldataprotection are areas aren arg argument arm armed arp array as asianux
aside ask asking asset assign assignable assigned assignment assigns assist associate associated association
associations assumed asymmetric async asynchronously at ata atapi atiixp attach attached attaching attempt attempted
attestation attested attribute attributes attrs audio audit aug auth authenticate authenticated authenticating
authentication authenticity authority authorization authorized auto autodetect automanagedraid automated automatic
automaticrebalance automation availability available average averaged avg awaiting back backed backing backings backs
backup bad balance balloon ballooned ballooning band bandwidth base based baseline basic batch battery bcast be beacon
bearer because becomes been before begin behalf behavior being belong belonging below best between binaries binary
bind binding bios bit bitness bits blacklisted blaster blob block blocked blocking blocks bluefield bluetooth bmc bnx
bnxtnet bnxtroce board bond bookkeep bool boolean boot bootable bootbank booted bootstrap both bound boundary bounds
bps brcmfcoe breakdown bridge bridged bridges brings broadcast broadcom broken bronze browse browser browsing bs btt
buffer buffersz build builtin bulk bulletins bundle bundled bundles bundling burn bus business busy but bx by bypasses
byte bytes ca cable cache cached caches cachesz caching calculated calculation call callback called calls cam can
cancel canceled cancelled cancels candidate cannot cap capabilities capability capacity capacitycustomizablethresholds
capacityevaluationonvc capacityoversubscription capacityreservation capture card cards cartel case catalog categories
category cause cbt cc ccagent cciss cd cdp cdr cdrom ceip celsius center centos cert certificate certificates
certified cest cet cfg cfw chain chains challenge chance change changed changer changes changingstateinconsistent
changingstatenotfinished channel chap characteristics characters check checked checker checking checkpoint
checkpointing checks checksum child children chipset choice choices chs cid cifs cim cisco claim claimed class classes
clean cleanly cleanup clear cleared clears client clientcertificateinconsistent clientkeyinconsistent clock clomd
clone cloned clones cloning close closed cloud cloudhealth cloudinit cluster clusteradvancedoptions clusterconfig
clustered clustering clusterpoweraction clusterpowerselfcontain clusters cmd cmkcannotretrieve cmknotinenabledstate
cmmds cndi cnflcts cnic cns cnsreconfigpolicy cnsvolumes cnx co code codes cold collection collector colocate column
columns com combined command commands commit common communicating communication communications community comparator
comparison compat compatibility compatible complete completed completion compliance complianceprecheck compliant
component components compose composite composition compressed compression compressionconfig compressiononly compulsory
computation compute computed computeonlycluster computes concat concentrator concurrent condition conditions config
configassist configs configurable configuration configurations configurator configure configured configures
configuring confirm confirmation confirms conflict conflicting conflicts congestion conjoiner conn connect connected
connectee connection connections connectivity connects connectx consecutive conservative conserve consideration
consistency consistent console consolidate consolidates consolidation constraint constraints consumed consumer
consumers consumption cont contact contain container containerd contains contending content contention contents
context continue control controlled controller controllers controls conversion convert cookie copied copies copy core
corecount coreos cores corporation correction correctness correlated correlation corresponding corrupt corrupted cos
cost costop could couldn count counter counters counts cow cp cpu cpuentitlement cpufairness cpuid cpus cr crash
crashed create created creates creating creation creator credential credentials criteria critical cross crs crx crypto
cryptographic cryptography cs csm csr csv ctx ctxswitchesrate cubic cuda current currently cursor cust custom
customizable customization customizations customize customized cyber cycle daemon daily darwin das data database
datacenter datacenters datacentre dataefficiency dataencryptionkeyinconsistent dataencryptionkeyverifierinconsistent
dataencryptionkeyverifierofdiskmetainconsistent datagram dataintransitencryption datamove datapersistresourcecheck
dataprovider dataservice dataserviceprecheck datastore datastoreiocontrol datastores date datetime day days db dcb
dcbx dcui deactivating dead debian debug debugging dec december declaring decode decodes decom decommission
decommissioning decompress decompression decomwhatif deconverged decrease decrypt dedicated dedup deduplication deep
deeprekey def default defaultaction defaults defer deferred define defined defines definition definitions defragment
degradation degraded degrees delete deleted deletes deleting deletion delivered delivery dell delta deltaused demand
denied deny dependencies dependency dependent depends deploy deployed deployer deploying deployment deploys depot
deprecated depth desc description descriptions descriptive descriptor descriptors deselect deserves desired dest
destination destroy destroyed destroys detach detached detail detailed details detect detected detecting detector
determined determines determining device devices devintf devoted dfcobjectsmanagement dg dhci dhciunmap dhcp diagnose
diagnosis diagnostic diagnosticmode diagnostics diagnosticsfeedback dialog did didn differ differences different
digest digests digits dimensions dimm dir direct direction directly directories directory disable disabled
disabledwhenclusterenabled disableencryption disablement disables disabling disallow disallowed disconnect
disconnected disconnects discouraged discover discoverable discovered discovering discovers discovery discrete disk
diskgroup diskhaspendingdeeprekey diskhaswrongdekid diskhaswrongpendingdekid diskmgmtredesign diskreadsectorrate
diskreadsrate diskresourceprecheck disks diskspace diskwritesectorrate diskwritesrate display displayed displays
disrupted dissociate dissociated distinguished distributed distribution dit divergence dn dnd dns do docker document
documentation does doesn doing dom domain domains don done doorbell dos double down downgrade downgraded download dp
dpm dpu dram drive driven driver drivers drop dropped drs drtm drv dry dryrun ds dscp dsk dst dual due duplex
duplexity duplicate duplicated duplicatepciidfix durable during dv dvfilter dvpg dvportgroup dvs dvx dword dx dying
dynamic e1000 e1000e each eager eam early ecx edge edit editable editing edition editor edu edx effect effective
effectivecpu effectivemem efficiency efi ehci eight either elapsed elasticpolicy election element elements eligibility
eligible else elxnet elxnetcli email embedded emc emigrating emit emm empty emulated emulex en enable enabled
enabledwhenclusterdisabled enablement enables enabling enc encap encapsulated enclosure encoding encountered encr
encrypt encrypted encryption end ended endpoint ends endurance energy enforced enforcement engine enhanced
enhancedresyncapi enhancement enic enough ens ensoniq ensure enter entered entering enterprise entities entitled
entitlement entity entries entry enum envbrowser envelope environment environments epc ephemeral epyc equal equals
erasedisksbeforeuseinconsistent eraseonrevert err error errors erspan es esa establish establishing estimate estimated
estimates esx esxcli esxi ethernet ets eui ev evac evacuate evacuates evacuation eval evaluate evaluation evc even
event events ever every ex example exceed exceeded exceeds except exception exceptions exclude exclusive exclusively
exec executable execute executed executer executes executing execution exist existence existent existing exists exit
exited exiting expand expanded expanding expected experimental expiration expired expiring expiry explicit explicitly
explorer export exported exports express expression ext extend extended extending extends extensible extension
extensions extent extents external externally extra extract extraction extracts fa fabric factory fail failed
failedover failover fails failure failures fairness false family fan fast fastpath fault faults fc fcd fcoe fd fdm
feasible feature features feb february fedora fetch few fibre field fields file filed files fileservice fileservicefds
fileservicekerberos fileservicenfsv fileserviceowe fileservices fileservicesc fileservicescale fileservicesmb
fileservicesnapshot filesystem filevolumes fill filled filter filtering find finds fingerprint firewall firing
firmware firmwareupdate first fit five fix fixed flag flags flash flat flatcar flavor flc flex float flood floppy flow
flp flush fnic folder folders following for force forcedeth forces forcibly foreign fork form format formats formatter
formatting forms forward found fount four fourth fqdn fragmentation frames free freebsd friday from fru fs fsvm ft ftp
full fully function functionality functioning functions fusionos fw gateway gathering gathers gb gbe gbit gbps gen
general generate generated generates generation generator generic genericnestedfd geometry get gethcllastupdateonvc
gets getting ghost ghz gib giga give given global globaldedup globaldedupencryption globaldedupv gmt goal gold golden
good gov gpt gpu granted graph graphics gray gre greater green grey grid group groups grow gsx guest gui guid gz ha
had hard hardware has hash hasn have haven having hb hba hbas hbr hcd hci hcimesh hcimeshpolicy
hcimeshstretchedcluster hcl hd hdcsintegration hdd he head header health healthcheck healthcorrelation
healthremediation healthy heap heapfree heartbeat heartbeats help her here hertz heterogenous hex hid hidden hierarchy
high higher highest hint his historical historicalcapacity historicalhealth history hit hms holding holds home honor
hook hopper horovod host hostaffinity hostd hostencryptiondekidinconsistent hosthaspendingdeeprekey hosthaswrongdekid
hosthaswrongolddekid hostkeyinconsistent hostkeynotavailable hostname hostnetworksystem hostonly hostreservedcapacity
hosts hostsynclatencystats hostsyncstats hostvirtualnicmanager hot hotmigrate hotspot hour hourly hours how hp hpe hpp
hpsa hpt ht html http httpclient https hub hubs hundred hv hw hwmmu hybrid hygon hyper hyperthreading hyperthreads
hypervisor hz i386 i40en i40enu icen id ide identification identifier identifies identities identity idle ids ieee if
igb igbn ignore ignored ii illegal ilo ima image imaging imbalance imbalancewithintolerance immediate immediately
imminent immutablesnapshot impact impersonate implemented implied import imported importing improved
improvedcapacityscreen in inaccess inaccessble inaccessible inactive inbound inc incapable includes including incoming
incompatible incomplete inconsistency inconsistent incorrect increase increased independent index indicates indirect
individual ineligible infini infiniband inflate info information infos infra infrastructure inherit inheritable init
initial initialization initialize initialized initializes initializing initiate initiated initiates initiator
initiators inject injected injects inprogress input inputs inquiry ins inside insight inspection install installation
installed installer installing installs instance instances instant instantiated instantiation instructed instructs
insufficient int integer integrity intel intellimouse interaction interactive interface interleave internal internally
internet interrupt interrupted interval intest into intr intranet invalid invalidduration invalidobjuuid invalidtarget
inventory inventorystats invocation invocations invoke invokes io iodiagmultiplevms iodiagnostics ioinsight iolb iops
iorm iov ip iperf ipfix iphash ipmi ips ipv ipv4 ipv6 iqn irdman is iscsi iscsitargets iser isn isns iso isolated
isolation issue issued issues it item items iteration its itself iwarp ixgbe ixgben jan january join joined joint
joule json jul july jumbo jun just k8s kb kbps keep keknotavailable kerberos kernel key keyboard keyed
keyencryptionkeyinconsistent keyencryptionkeyverifierinconsistent keys keystore kib kill kills kilo kilobyte kilobytes
kind kmip kms kmsinfoinconsistent knic know known krb ks ksupport kubernetes kylinlinux label lacp lag lan languages
large largecapacitydrive larger last lat late latency latest layout lazy lb lba ldap lds le leaked learning lease
leases least leave led left legacy lenovo less letters level levels lib library licence licensable license licenseable
licensed licenses lifecycle like limit limited limits line link linked linklayer linux list listen lists live liveness
lkup ll llc lldp load loadbalance loadbased loaded local localdataprotection localdomain locale localhost localizable
localization localized locates location locator lock lockdown locked locker locking locks lockstats log logged logging
logic logical login logitech logons logout logs long longhorn look lookup loop loopback lose loss lost low lower
lowest lowfreethreshold lpfc lro lrostats ls lsi lso lsom lsu ltd lu lun luns mac machine machines made maint
maintenance maintenancemode make makes making malformed manageability manageable managed management manager managing
mandatory mandrake mandriva manifest manipulate manipulation manual manually many map mapped mapping mappings mar
march marginal marked mask maskable mass masspropertycollector master match matched matches matching maximum maximums
maxing maxlimited mb mbox mbps mbr mcast mcrypt md md5 me measurement media medium mega megabyte megahertz megaraid
mellanox mem member membership mementitlement memfairness memory merge merged mesh message messages met meta metadata
metadataresiliency method methods metric metrics metricsconfig metro mft mgmt mhz mib microcode microsecond
microseconds microsoft mig might migrate migrated migrates migrating migration migrations millisecond milliseconds min
mini minimum minrebalancethreshold mins minute minutes miraclelinux mirror mis misc miscellaneous misconfiguration
misconfigured miscstats mismatch mismatched miss misses missing mixed mkernel mks mlx mm mmu mo mode model modes
modified modifier modify module modules monday monitor monitored monitoring monitors monolithic month monthly months
more morefregstats most motherboard motion mount mounted mounts mouse mouseman movable move moved movement moves mpt
mptsas mptspi mpx mr ms msghandler msgpt msgpt35 msi mt mtip mtu much multi multicast multipath multiple must mutual
mutually mux mware mwbsize mx na naa name named names namespace namespaces nanosecond napi nas nat native
nativelargeclustersupport nccl ne1000 near necessary necvm need needed needs negatable nenic nest nested
nestedfaultdomain nestedfd net netperftest netstack netware network networking networkpartition networks never new
newer newest newreno next nf nfc nfs nfs41 nfsv ni nic nics nine nkp nld nm nmi nmlx nmlx4 nmlx5 nmst no node nodes
nogreater noless noliveinstall non nonavailabilityrelatedincompliance
nonavailabilityrelatedincompliancewithpausedrebuild nonavailabilityrelatedincompliancewithpolicypending
nonavailabilityrelatedincompliancewithpolicypendingfailed nonavailabilityrelatedreconfig noncompliant
nondatamovementdfc none nonhealthy nonpersistent nor noreboot normal normalized nosigcheck not note nothing
notification notifications notifies notify notsupported nov november now npiv npt nqn ns nsx nt ntfs ntg3 ntp ntpd
null num numa number numbers numeric nv nvd nvdimm nvds nvidia nvlink nvm nvme nvmetcp nvram nx obfuscation obj object
objectencryptioninconsistent objectidentities objects objs observed obsolescence obsolete obsoleted obtained occurred
oct october oem oes of off offline offlinebundle offload often ohci oi oio ok old olddataencryptionkeyinconsistent
older oldest oldversion on once one ongoing online only onto op opaque open openmpi opens opensuse operating operation
operational operations operator opportunistic ops opt optical optimally optimization option optional options or oracle
orchestration order org origin original orphaned os osp ost other others otherwise oui our out outage outbound outcome
outgoing outstanding ova ovaunpack over overall overcommitted overhead overlap overlay override overrides overwrite
ovf ovfenv ovfs ovhd ovrhd own owned owner ownership package packages packet packetrecvrate packets packetsentrate
page pagefaultrate pages pair pairs para parallel param parameter parameters params pardus parent parse parsed parses
part partial partially participates particular partition partitionable partitioned partitions partner party pascal
pass passed passive passthrough passthru password passwords past pata patch patches path pathing paths pause paused
pauses payloads pb pbc pbm pc pcap pci pcie pcipassthrough pcp pct pda pdc pe peaberry peak peer pem pending per
percent percentage percentages percents perennially perf perfanalysis perform performance performanceforsupport
performed performs perfsvc perfsvcautoconfig perfsvcdhciv perfsvcdisabled perfsvctwoyaxisgraph perfsvcverbosemode
period permanent permille permission permissions persist persistence persistent perspective pertaining pfc pg phase
phone photon phys physical physicalmemusage pick piix ping pinned pipe pkts place placed placement placements placing
plain plan planning platform platforms platinum please plug plugin plus pm pman pmanintegration pmem pnic pod point
pointer pointing points policies policy policyassociation policyhostapi pool pools pop populate port portgroup
portgroups ports portset poses position posix possible post posts potentially power powered poweredge poweredoff
poweredon powering poweroff poweron powers pr practice pre preallocated precheck precision predicate preemptible
preference preferences preferred prefix preflight prep prepare prepared prepares preparing prerequisite present
preserved preset pretends prev prevent preview previous previously primary principal print printer prior priority
private priviledgedcpuusage privilege privileged privileges pro proactive proactiveneededbutdisabled
proactivenotmustdo proactiverebalancefailed proactiverebalanceinprogress probe problem proceed process processed
processes processor processors product products profile profiles program progress prohibited project proliant prolinux
prometheus promisc promiscuous promote prompt properties property protected protection proto protocol protocols protos
provided provider provides provision provisioned provisioning proxied proxy ps pspairgap ptp ptpd public publish pull
punt purge purgeinaccessiblevmswapobjects purpose push put puts pv pvlan pvrdma pvscsi pxe pytorch qedentv qedrntv
qfle3 qla qlnativefc qm qos quad quadro qualified qualifier quality quarantine quarantined queried queries query
question queue queued queuepair quick quiesce quiesced quorum qword raid raise raised random range ranges rank ranked
rate rates ratio raw rdm rdma rdmp rdmv reachable reached reaction reactiverebalancefailed reactiverebalanceinprogress
read readiness reading readlocalitytodrs reads ready real reallocated really reason reassign reassociate rebalance
rebalancediskunhealthy rebalanceentitydecom rebalanceoff reboot rebooted rebooting rebootingimage rebuild receive
received receives recent reclaim reclaimed reclaiming reclaims reclamation recommend recommendation recommendations
recommended recommends recommission recommissions recompute recomputes reconcile reconfig reconfiguration reconfigure
reconfigured reconfigures reconnect reconnection reconnects record recorded recording records recoverable recovered
recovery recreatediskgroup recrypt rectify recurrence recurrences recurrent recursion recursively recv red redhat redo
reducedavailabilitywithactiverebuild reducedavailabilitywithnorebuild reducedavailabilitywithnorebuilddelaytimer
reducedavailabilitywithpausedrebuild reducedavailabilitywithpolicypending reducedavailabilitywithpolicypendingfailed
redundancy redundant ref reference referenced referring refresh refreshes refused regarding regenerate regex region
register registered registers registration registry regs regulation rejected rekey related relation relayout release
releases reliable reload reloads relocate relocated relocating relocation remaining remediate remediating remediation
remediations remote remotedataprotection remotedatastore removal remove removed removes removing rename renamed
renames renderer renew repair repairing repairtimerinresyncstats reparent repl replace replacement replaces replay
replaying replica replicas replicate replicated replicating replication report reported reporting representing
represents reprotect request requests require required requirement requirements requires rescan rescans rescpu
reservation reservations reserve reserved reserves reset resets resetting resgroup resignature resize resizing
resolution resolve resolves resort resource resourceprecheck resources respond responding response restart restarted
restarting restarts restore restored restricted restricting restriction result results resume resumed resuming resyn
resync resyncetaimprovement resynchronization retrieval retrieve retrieved retrieves retry return returned returns rev
reverse revert reverts revision revocation revoke revoked revokes rewind rewrite rhel rights ring risk ro roce rocev
rocky rockylinux rogue role rollback rolled rollup rom root roots rotation route router row rpo rsa rste rule rules
ruleset rulesets run runav running runninginstance runninginstanceontarget runpk runs runtime rx sa saas safe said
same saml sample sampling san sas sata satisfiability satisfiable satisfied satisfies saturday save saved saving says
sc scale scaled scan scanner scanning scav schedulable schedule scheduled scheduler scheduling schema scheme schemes
scope scoreboard screen screenshot script scripts scroll scrub scrubbed scrubber scsi sddc sdrs se search searches
seat sec second secondaries secondary seconds secs section sections sector secure securewipe security see seed seeks
seen segment select selected selection self send sends sensitivity sensor sensors sent sep september sequence serial
serialized serialuri series serv served server servercertificatesinconsistent serverd servers serverworks service
services session sessions sessionstats set sets setting settings settled setup sev seven severity sfp sgx sha sha1
sha256 sha512 shall shallow shaper shaping share shared sharedcommon sharedwitness shares sharing she shell ship short
shortly should shouldn show shows shrink shrinks shut shutdown shutting si sig sigkill sign signature signatures
signed signer signing sigterm sil silent silver simple since single sio sioc site six size sizing sjds skew skinit
skipped slack slackspacecapacity sles sliced slot slots slow slp slpd sm small smaller smart
smartdriveratedmaxtemperature smartdrivetemperature smarthealthstatus smartinitialbadblockcount
smartmediawearoutindicator smartpowercyclecount smartpoweronhours smartpqi smartrawreaderrorrate smartreaderrorcount
smartreadsectorstotct smartreallocatedsectorct smartwriteerrorcount smartwritesectorstotct smb smp sms snap
snapservice snapshot snapshots snmp snooping sns so socket sockets soft software solaris solid solution solutions
solver some sort sound source space span sparse spbm spc spec special specific specification specified specifies specs
speed spent sphere spherelet sps sr src srcid srcmac sriov srm srv ssd ssds ssh ssl sso sspi stack stage stale stamp
stand standalone standard standby start started starting starts startup stat state stateless states static station
statistic statistical statistics stats statsdb status steps still stop stopped stopping stops storage store stored
storing stream stretched stretchedcluster strict strictness string strong structure structured structures stuck stun
sub subfolders subject subkeys subnet subprofiles substring subsystem succeeded success successful successfully such
suitable sum summarizes summary summation sunday super supermicro superseded supervisor supplied supplying support
supported supportinsight supports suse suspend suspended suspending suspends sv svc svga svmotion svw sw swap swapin
swapout swapped swapping swaptarget swapunreserved swapused swapwait switch switches sxm symlink symmetric sync synced
synchronizing syncing sys syscallsrate syslog sysprep system systemcpuusage systems systemstats tab table tag tags
take taken takeover takes tape tar target targets task tasks tb tboot tcp tcpip tdx team teaming tech technical
techniques technologies telemetry tell temperature template temporary ten tenant tensorflow tentative tera terabyte
terminate terminated terminates terminations tesla test tests text textually tg tgw tgz than that the their them then
there these they thick thin thinksystem third this those thousand thread threading threads three threshold thresholds
throttled throttleresync through throughput thru thumbprint thursday tib ticket ticketed tier tiering time timed
timedout timeout timer times timespan timing title tls tm to toggle token tolerance tolerant tolerated too tool tools
toolsdeploypkg toomanyobjects toomanytargets top topcontributors topology total totalmb totalmhz touched tpm tput
trace traceobject tracking traffic trailing transaction transfer transformation transient transit transition
transitional translation transmit transmits transmitted transport traversal tree trigger triggered triggering triggers
trim trip troubleshooting true trunk trunked trust trusted trusts try tsm tso ttl tuesday turbo turing turn turned
turning turns two tx txt type types typically ubuntu udp uefi uhci ui umap un unable unassign unassigned unassigns
unattended unavailable unbind unblocked unbound uncommitted unconfigured unconfiguring uncorrelated uncustomizable
undeclared undefined under undergone underscore undoable unequal unexpected unhealth unhealthy unicast unicastmode
unicasttest unified uninitialization uninitialized uninstall uninstallation uninstalled uninstaller uninstalls unique
unit unix unknow unknown unless unlicensed unload unlock unlocked unmanageable unmanaged unmap unmappable unmark
unmonitored unmount unmounted unmounts unowned unpauses unpingable unprotected unreachable unreadable unrecognized
unrecoverable unregister unregistered unregisters unregistration unreserved unresolved unrestricted unset unshared
unspecified unsup unsupported until untried untrunked untrusted unused up update updated updates
updatevumreleasecatalogoffline updating updt upgrade upgraded upgraderesourceprecheck upgrades upgrading uplink
uplinks upload uploaded uploads upper upt uptime ur ure uri url urls urn us usable usag usage usagemhz usb usbxhci use
used user usercpuusage username users userworld userworlds using usr usually utc utilization utilized uuid uuids
uwswap vaio valid validate validateconfigspec validated validates validation validity value values vanilla variable
variant vars vasa vboss vc vcconfig vcenter vcenters vcf vcg vcha vcls vcp vcpu vcpus vcs vcsa vcsadeploy
vcservicestats vdisk vdp vds vector vendor vendors ver verbose verbosemodeconfiguration verification verifies verify
version versions very vfat vffs vflash vgpu vi via vib vibname vibs viburl video view viewed vim vio violated
violation vip virtual virtualization virtualmemusage visibility vista vitonlineresize vitstretchedcluster vlan vlcm vm
vmc vmci vmcp vmd vmdk vmem vmfs vmfs5 vmfs6 vmhba vmi vmiop vmirom vmk vmkata vmkernel vmkmod vmknic vmknvme
vmlevelcapacity vmmemctl vmmemctltarget vmnic vmnics vmnotpoweredon vmomi vmop vmotion vmrdma vms vmsd vmsn vmswap
vmtn vmtools vmw vmware vmx vmxnet vmxnet3 vnetworking vnic vnics vol volatile volta voltage volume volumerelocation
volumes vpc vpx vpxa vpxd vram vrdma vsan vsananalyticsevents vsanbootstrap vsanclient vsancyberrecovery
vsandedicatedvmknic vsandefaultgatewaysupported vsandiagnostics vsandirect vsandirectdiskdecom vsandisabled
vsandsdefaultpolicy vsaneffectivecapacity vsanencrkmx vsanesasingletier vsanhcimeshdit vsanhcimeshmixmode vsanhealth
vsanhostdomlatencysort vsaniscsivip vsankeyexpiration vsanmanagedpmem vsanmanagedvmfs vsanmetadatanode vsanmgmtd
vsanobjectinremotedatastore vsanobjhealthv vsanperfhighresolution vsanperfsvc vsanrdma vsanrebuildtrim vsanreplication
vsanscclientv vsansitemaintenance vsansitemmandtakeover vsansky vsanstretchedclient vsanvmdiskplacementxvc
vsanwitnesscontainer vsanxvchcimesh vsanxvchcimeshscv vsanxvchcimeshv vslm vsmp vspan vsphere vss vswitch vswp vum
vumbaselinerecommendation vumintegration vvol vxlan wait waiting wake ware warning warnings was wasn watchdog watt
wavefront wcpappplatform wdt we weak web webmks wednesday week weekday weekly weeks welcome went were weren what
whatif whatifcapacity when where whether which while who whose why wide win window windows wipe wipes wiping wireless
with within without witness witnessmanagement wizard word words work workarounds workflow working workload world worm
worst would wouldn wow wrapped wrapper wrapping writable write writer writes writing written wrong wusb wwn wwnn wwpn
www x86 xeon xhci xi xml xmlns xorg xp xsd xserver xsi xv xvc xvmotion xxxxx xz yaml year years yellow yes yet you
your zdom zero zeroed zeros zip zipped zone zones zx
"""
WORDS = frozenset(_TEXT.split())
