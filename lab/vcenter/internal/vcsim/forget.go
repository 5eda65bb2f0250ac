package vcsim

// ForgetTasks removes all tasks, as a restart of vCenter's service does. Their work continues.
// VMware: vSphere API reference, Task: tasks "are not persisted". vSphere Troubleshooting: hosts complete operations
// without vCenter.
// Ours: a migration that runs meanwhile always completes. Task histories still contain the tasks.
func (s *Sim) ForgetTasks() {
	for _, task := range s.Registry.AllReference("Task") {
		s.Hide(s.Context(), task.Reference())
		s.Registry.Remove(s.Context(), task.Reference())
	}
}
