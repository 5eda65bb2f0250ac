package esxcli

import cli "github.com/vmware/govmomi/cli/esx"

// Values are the fields of a struct, or the arguments of a command, by name.
type Values = cli.Values

// Response is the answer of a command.
type Response = cli.Response
