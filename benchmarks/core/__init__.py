"""The core of every benchmark: tasks, contenders, cells, the store, the runner, pages."""
