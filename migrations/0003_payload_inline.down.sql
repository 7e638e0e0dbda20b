alter table events reset (toast_tuple_target);
