package vcsim

// GoName returns the name of the Go method for a vSphere method: PowerOnVMTask for PowerOnVM_Task.
func GoName(method string) string {
	const suffix = "_Task"
	name := Capital(method)
	if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
		return name[:len(name)-len(suffix)] + "Task"
	}
	return name
}

// TaskName returns the name of the task that a vSphere method starts: PowerOnVM_Task starts powerOnVMTask.
func TaskName(method string) string {
	name := GoName(method)
	return string(lower(name[0])) + name[1:]
}

// Capital returns the name with a capital first letter.
func Capital(name string) string { return string(upper(name[0])) + name[1:] }

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}
