import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '@xyflow/react/dist/base.css';
import './style.css';
import { App } from './App.tsx';
import { takeToken } from './route.ts';
import { store } from './store.ts';

takeToken();
store.connect();
const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
