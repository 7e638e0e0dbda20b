begin;
drop function erase_subject(smallint, bigint);
grant update on subject_keys to countersign_app;
commit;
