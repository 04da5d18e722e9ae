-- Removes the broker's tables with everything in them.
DROP VIEW task_list;
DROP TABLE servers;
DROP TABLE quarantine;
DROP TABLE subjects;
DROP TABLE locks;
DROP TABLE follow_ups;
DROP TABLE payloads;
DROP TABLE unrecorded;
DROP TABLE cancels;
DROP TABLE tasks;
DROP TABLE days;
DROP TABLE queues;
DROP TABLE meta;
