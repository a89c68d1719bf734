module gpushare.io/scheduler

go 1.26
