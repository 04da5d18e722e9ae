-- Removes the ledger's tables with everything in them.
DROP TABLE settings;
DROP TABLE dead_letters;
