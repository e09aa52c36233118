// ExportLens: Show Logs opens what the extension, the server and the exported models have written.

import type { Command } from './command';

export const showLogs: Command = {
  id: 'exportlens.showLogs',
  run({ log }) {
    log.show();
    return Promise.resolve();
  },
};
