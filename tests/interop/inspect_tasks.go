// The inspector's calls on tasks: one, by page, or all of a state.

package main

import (
	"fmt"

	"github.com/hibiken/asynq"
)

var taskOps = map[string]op{
	"task":           oneTask,
	"list":           listTasks,
	"run":            func(i *asynq.Inspector, c *call) (any, error) { return true, i.RunTask(c.Queue, c.ID) },
	"archive":        func(i *asynq.Inspector, c *call) (any, error) { return true, i.ArchiveTask(c.Queue, c.ID) },
	"delete":         func(i *asynq.Inspector, c *call) (any, error) { return true, i.DeleteTask(c.Queue, c.ID) },
	"cancel":         func(i *asynq.Inspector, c *call) (any, error) { return true, i.CancelProcessing(c.ID) },
	"update_payload": updatePayload,
	"run_all":        runAll,
	"archive_all":    archiveAll,
	"delete_all":     deleteAll,
}

func oneTask(i *asynq.Inspector, c *call) (any, error) {
	info, err := i.GetTaskInfo(c.Queue, c.ID)
	if err != nil {
		return nil, err
	}
	return taskView(info), nil
}

func updatePayload(i *asynq.Inspector, c *call) (any, error) {
	body, err := payload(c.Payload, c.PayloadBase64, c.PayloadJSON)
	if err != nil {
		return nil, badLine{err}
	}
	return true, i.UpdateTaskPayload(c.Queue, c.ID, body)
}

func listTasks(i *asynq.Inspector, c *call) (any, error) {
	list := map[string]func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		"pending": i.ListPendingTasks, "active": i.ListActiveTasks, "scheduled": i.ListScheduledTasks,
		"retry": i.ListRetryTasks, "archived": i.ListArchivedTasks, "completed": i.ListCompletedTasks,
		"aggregating": func(queue string, opts ...asynq.ListOption) ([]*asynq.TaskInfo, error) {
			return i.ListAggregatingTasks(queue, c.Group, opts...)
		},
	}[c.State]
	if list == nil {
		return nil, noForm(c)
	}
	tasks, err := list(c.Queue, c.paging()...)
	if err != nil {
		return nil, err
	}
	return taskViews(tasks), nil
}

// A bulk call acts on all tasks of a queue in one state and says how many they were.
type bulk map[string]func(queue string) (int, error)

func (b bulk) call(c *call) (any, error) {
	all := b[c.State]
	if all == nil {
		return nil, noForm(c)
	}
	return all(c.Queue)
}

// noForm answers for states that asynq has no such method for.
func noForm(c *call) error {
	return badLine{fmt.Errorf("asynq has no %s for the state %q", c.Op, c.State)}
}

func runAll(i *asynq.Inspector, c *call) (any, error) {
	return bulk{
		"scheduled": i.RunAllScheduledTasks, "retry": i.RunAllRetryTasks, "archived": i.RunAllArchivedTasks,
		"aggregating": func(queue string) (int, error) { return i.RunAllAggregatingTasks(queue, c.Group) },
	}.call(c)
}

func archiveAll(i *asynq.Inspector, c *call) (any, error) {
	return bulk{
		"pending": i.ArchiveAllPendingTasks, "scheduled": i.ArchiveAllScheduledTasks, "retry": i.ArchiveAllRetryTasks,
		"aggregating": func(queue string) (int, error) { return i.ArchiveAllAggregatingTasks(queue, c.Group) },
	}.call(c)
}

func deleteAll(i *asynq.Inspector, c *call) (any, error) {
	return bulk{
		"pending": i.DeleteAllPendingTasks, "scheduled": i.DeleteAllScheduledTasks, "retry": i.DeleteAllRetryTasks,
		"archived": i.DeleteAllArchivedTasks, "completed": i.DeleteAllCompletedTasks,
		"aggregating": func(queue string) (int, error) { return i.DeleteAllAggregatingTasks(queue, c.Group) },
	}.call(c)
}
